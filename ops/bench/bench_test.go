package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	corev1 "k8s.io/api/core/v1"

	"github.com/hanzoai/k8s/plane"
)

// TestSameAnswers checks that the rivals project the objects of the benchmark as
// the guest does, from protobuf and from JSON.
func TestSameAnswers(t *testing.T) {
	ctx := t.Context()
	var list corev1.PodList
	var items [][]byte
	for i := range 25 {
		p := pod("bench", i)
		raw, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		list.Items, items = append(list.Items, *p), append(items, raw)
	}
	wasm, err := builtin("pods")
	if err != nil {
		t.Fatal(err)
	}
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	code, err := rt.CompileModule(ctx, wasm)
	if err != nil {
		t.Fatal(err)
	}
	if err := provide(ctx, rt, code); err != nil {
		t.Fatal(err)
	}
	wasi_snapshot_preview1.MustInstantiate(ctx, rt)
	b, err := newBare(ctx, rt, wasm, items)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.run(ctx); err != nil {
		t.Fatal(err)
	}
	var guest, typed, raw plane.Pods
	for d := json.NewDecoder(bytes.NewReader(b.out)); d.More(); {
		var row plane.Pod
		if err := d.Decode(&row); err != nil {
			t.Fatal(err)
		}
		guest.Pods = append(guest.Pods, row)
	}
	projectPods(list.Items, &typed)
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = projectRaw(&scenarios()[0], [][]byte{text}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]plane.Pods{"typed": typed, "raw": raw} {
		if diff := cmp.Diff(guest, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-guest +%s):\n%s", name, name, diff)
		}
	}
	crashing := 0
	for _, row := range guest.Pods {
		if row.Reason == "CrashLoopBackOff" && row.Restarts > 0 {
			crashing++
		}
	}
	if len(guest.Pods) != 25 || crashing != 3 {
		t.Errorf("%d rows, of which %d crash", len(guest.Pods), crashing)
	}
}
