package zip

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var everybody = Caller{Org: "acme", Project: "p", User: "u1", Name: "Doe, Jané", Email: "j@acme.example", Owner: "acme",
	IsAdmin: true, IsOrgAdmin: true, RequestID: "r-1", ActedBy: "u2"}

func TestTenant(t *testing.T) {
	for _, c := range []struct {
		org, want string
	}{
		{"acme", "acme"},
		{"Acme", "Acme"},
		{" \tacme\t ", "acme"},
		{"a b", "a b"},
		{"a.b", "a.b"},
		{"a+b", "a+b"},
		{"...", ""},
		{"ünï", "ünï"},
		{"u\u0308n", "u\u0308n"}, // not normalised
		{"%2e%2e", "%2e%2e"},
		{strings.Repeat("o", MaxOrg), strings.Repeat("o", MaxOrg)},
		{" " + strings.Repeat("o", MaxOrg) + " ", strings.Repeat("o", MaxOrg)},
		{strings.Repeat("o", MaxOrg+1), ""},
		{strings.Repeat("é", MaxOrg/2+1), ""},
		{"", ""},
		{" \t ", ""},
		{".", ""},
		{"..", ""},
		{" .. ", ""},
		{"a..b", ""},
		{"a/b", ""},
		{"/", ""},
		{`a\b`, ""},
		{"*", ""},
		{"acme*", ""},
		{"+", ""},
		{"acme, zoo", ""},
		{"a\x00b", ""},
		{"a\nb", ""},
		{"a\x7fb", ""},
		{"a\u0085b", ""},
		{"a\u200bb", ""}, // a space of no width
		{"a\u00a0b", ""},
		{"\u00a0acme", ""},
		{"a\u202eb", ""}, // right to left
		{"a\xffb", ""},
	} {
		got, err := Tenant(Caller{Org: c.org, User: "u1"})
		var ie *IdentityError
		if got != c.want || (err == nil) != (c.want != "") || err != nil && (!errors.As(err, &ie) || ie.Field != HeaderOrg) {
			t.Errorf("Tenant(%q) = %q, %v, want %q", c.org, got, err, c.want)
		}
	}
	for _, user := range []string{"", " ", "\t"} {
		var ie *IdentityError
		if got, err := Tenant(Caller{Org: "acme", User: user}); !errors.As(err, &ie) || ie.Field != HeaderUser {
			t.Errorf("without a user: %q, %v", got, err)
		}
	}
}

func TestCallerHeaders(t *testing.T) {
	h := everybody.Header()
	if len(h) != len(identity) {
		t.Errorf("%d headers for %d fields", len(h), len(identity))
	}
	got, err := CallerFromHeader(h)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(everybody, got); d != "" {
		t.Error(d)
	}
	if got, err := CallerFromHeader(http.Header{"Accept": {"a", "b"}}); err != nil || got != (Caller{}) {
		t.Errorf("nobody: %+v, %v", got, err)
	}
	if h := (Caller{}).Header(); len(h) != 0 {
		t.Errorf("nobody has headers: %v", h)
	}
}

func TestIdentityThatCannotBeBelieved(t *testing.T) {
	for name, h := range map[string]http.Header{
		"twice":            {"X-Org-Id": {"acme", "zoo"}},
		"twice and equal":  {"X-Org-Id": {"acme", "acme"}},
		"twice, one empty": {"X-Org-Id": {"", "acme"}},
		"in two spellings": {"X-Org-Id": {"acme"}, "x-org-id": {"acme"}},
		"joined":           {"X-Org-Id": {"acme, zoo"}},
		"joined closely":   {"X-Org-Id": {"acme,acme"}},
		"user twice":       {"X-User-Id": {"u1", "u1"}},
		"request id twice": {"X-Request-Id": {"a", "b"}},
		"control":          {"X-User-Id": {"u1\x00"}},
		"line break":       {"X-User-Name": {"a\r\nX-Org-Id: zoo"}},
		"delete":           {"X-Project-Id": {"a\x7f"}},
		"not UTF-8":        {"X-User-Name": {"\xff"}},
		"without end":      {"X-Acted-By": {strings.Repeat("a", MaxIdentity+1)}},
		"not a flag":       {"X-User-Isadmin": {"yes"}},
		"flag twice":       {"X-User-Isadmin": {"false", "true"}},
	} {
		c, err := CallerFromHeader(h)
		var ie *IdentityError
		if !errors.As(err, &ie) || c != (Caller{}) {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	for value, want := range map[string]bool{"true": true, "1": true, "false": false, "0": false, "": false} {
		c, err := CallerFromHeader(http.Header{"X-User-Isorgadmin": {value}})
		if err != nil || c.IsOrgAdmin != want || c.IsAdmin {
			t.Errorf("flag %q: %+v, %v", value, c, err)
		}
	}
}

func TestInboundWins(t *testing.T) {
	ctx := context.Background()
	if c, ok := CallerOf(ctx); ok {
		t.Errorf("nobody is %+v", c)
	}
	stated := WithCaller(ctx, Caller{Org: "zoo", User: "thief"})
	if c, ok := CallerOf(stated); !ok || c.Org != "zoo" {
		t.Errorf("stated: %+v, %v", c, ok)
	}
	if c, ok := CallerOf(WithInbound(stated, everybody)); !ok || c != everybody {
		t.Errorf("inbound over stated: %+v, %v", c, ok)
	}
	if c, ok := CallerOf(WithCaller(WithInbound(ctx, everybody), Caller{Org: "zoo"})); !ok || c != everybody {
		t.Errorf("stated within a request: %+v, %v", c, ok)
	}
	if c, ok := CallerOf(WithCaller(WithInbound(ctx, Caller{}), Caller{Org: "zoo"})); ok {
		t.Errorf("a request without an identity became %+v", c)
	}
}
