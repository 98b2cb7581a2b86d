package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// uniqueOrg is an org no other test, and no other run on this world, has.
func uniqueOrg(name string) string { return name + "-" + strings.ToLower(newID()[:8]) }

// TestStore holds every store to the same.
func TestStore(t *testing.T) {
	for name, open := range map[string]func(*testing.T) Store{
		"memory": func(*testing.T) Store { return NewMemory() },
		"vault":  func(t *testing.T) Store { return realVault(t) },
	} {
		t.Run(name, func(t *testing.T) { testStore(t, open(t)) })
	}
}

func testStore(t *testing.T, s Store) {
	ctx, org := t.Context(), orgOf(t, uniqueOrg("store"))
	ref := credentialRef(org, "prod")
	wantGet := func(version int, data string, found int) {
		t.Helper()
		got, v, err := s.Get(ctx, org, ref, version)
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		_ = json.Unmarshal(got, &a)
		_ = json.Unmarshal([]byte(data), &b)
		if diff := cmp.Diff(b, a); diff != "" || data != "" && v != found {
			t.Fatalf("version %d is %d (-want +got)\n%s", version, v, diff)
		}
	}
	wantVersions := func(newest int, live ...int) {
		t.Helper()
		n, l, err := s.Versions(ctx, org, ref)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(live, l); n != newest || diff != "" {
			t.Fatalf("newest is %d, want %d; live (-want +got)\n%s", n, newest, diff)
		}
	}
	put := func(data string, cas, want int) {
		t.Helper()
		v, err := s.Put(ctx, org, ref, []byte(data), cas)
		if err != nil || v != want {
			t.Fatalf("put as %d: version %d, error %v", cas, v, err)
		}
	}
	wantConflict := func(cas int) {
		t.Helper()
		if _, err := s.Put(ctx, org, ref, []byte(`{"a":"lost"}`), cas); !errors.Is(err, ErrVersion) {
			t.Fatalf("put as %d: %v, want ErrVersion", cas, err)
		}
	}

	wantGet(0, "", 0)
	wantVersions(0)
	wantConflict(1)
	put(`{"a":"1","n":9007199254740993,"l":["x"]}`, 0, 1)
	wantConflict(0)
	put(`{"a":"2"}`, 1, 2)
	wantConflict(1)
	wantGet(0, `{"a":"2"}`, 2)
	wantGet(1, `{"a":"1","n":9007199254740993,"l":["x"]}`, 1)
	wantGet(7, "", 0)
	wantVersions(2, 1, 2)

	if err := s.Destroy(ctx, org, ref, 1); err != nil {
		t.Fatal(err)
	}
	wantGet(1, "", 0)
	wantGet(0, `{"a":"2"}`, 2)
	wantVersions(2, 2)
	if err := s.Destroy(ctx, org, ref, 2); err != nil {
		t.Fatal(err)
	}
	wantGet(0, "", 0)
	wantVersions(2)
	wantConflict(0)
	put(`{"a":"3"}`, 2, 3)

	if _, err := s.Put(ctx, org, recordRef(org, "prod"), []byte(`{}`), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Put(ctx, org, recordRef(org, "stage"), []byte(`{}`), 0); err != nil {
		t.Fatal(err)
	}
	names, err := s.List(ctx, org, clustersRef(org))
	if diff := cmp.Diff([]string{"prod/", "stage/"}, names); err != nil || diff != "" {
		t.Fatalf("%v (-want +got)\n%s", err, diff)
	}
	names, err = s.List(ctx, org, clustersRef(org)+"/prod")
	if diff := cmp.Diff([]string{"kubeconfig", "record"}, names); err != nil || diff != "" {
		t.Fatalf("%v (-want +got)\n%s", err, diff)
	}

	for range 2 { // the second finds nothing, which is no error
		if err := s.Destroy(ctx, org, ref); err != nil {
			t.Fatal(err)
		}
	}
	wantGet(0, "", 0)
	wantGet(3, "", 0)
	wantVersions(0)
	put(`{"a":"again"}`, 0, 1)
	for _, r := range []string{ref, recordRef(org, "prod"), recordRef(org, "stage")} {
		if err := s.Destroy(ctx, org, r); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := s.List(ctx, org, clustersRef(org)); err != nil || len(names) > 0 {
		t.Fatalf("after everything is destroyed: %v, %v", names, err)
	}

	var won atomic.Int32
	var racing sync.WaitGroup
	for i := range 8 {
		racing.Go(func() {
			if _, err := s.Put(ctx, org, ref, fmt.Appendf(nil, `{"a":"%d"}`, i), 0); err == nil {
				won.Add(1)
			}
		})
	}
	racing.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d of 8 writers of the same version won", won.Load())
	}
	if err := s.Destroy(ctx, org, ref); err != nil {
		t.Fatal(err)
	}
}
