package zip

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The identity headers. A gateway asserts them; a service passes them on as they
// came and never makes them up.
const (
	HeaderOrg        = "X-Org-Id"
	HeaderProject    = "X-Project-Id"
	HeaderUser       = "X-User-Id"
	HeaderUserName   = "X-User-Name"
	HeaderUserEmail  = "X-User-Email"
	HeaderUserOwner  = "X-User-Owner"
	HeaderIsAdmin    = "X-User-IsAdmin"
	HeaderIsOrgAdmin = "X-User-IsOrgAdmin"
	HeaderRequestID  = "X-Request-Id"
	HeaderActedBy    = "X-Acted-By"
)

// Caller is who a call is for. An empty field is one nobody asserted.
type Caller struct {
	Org        string // the tenant; [Tenant] says whether it can be one
	Project    string
	User       string // the validated user's id
	Name       string
	Email      string
	Owner      string // the org the user belongs to
	IsAdmin    bool
	IsOrgAdmin bool
	RequestID  string
	ActedBy    string // who acts, when somebody acts on another's behalf
}

type (
	statedKey  struct{}
	inboundKey struct{}
)

// WithCaller states who the calls made with the context are for. It is for work
// that has no request behind it: beside an inbound identity it has no effect, so
// that no handler can become somebody else.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, statedKey{}, c)
}

// WithInbound attaches the identity a request came with, even an empty one. It
// is for servers; [Server] does it for every request.
func WithInbound(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, inboundKey{}, c)
}

// CallerOf is who the context is for: the inbound identity, else the one stated.
// It is false when there is none, or when the request came with none.
func CallerOf(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(inboundKey{}).(Caller)
	if !ok {
		c, ok = ctx.Value(statedKey{}).(Caller)
	}
	return c, ok && c != Caller{}
}

// IdentityError is an identity that cannot be believed or used. Field is the
// header it came in, and Reason why; neither repeats the value.
type IdentityError struct {
	Field  string
	Reason string
}

func (e *IdentityError) Error() string { return "zip: " + e.Field + " " + e.Reason }

// MaxOrg is the most bytes an org may have, and MaxIdentity any other value of an
// identity header: each is written to logs as it came.
const (
	MaxOrg      = 128
	MaxIdentity = 1024
)

// Tenant is the org a caller acts for, or an [*IdentityError].
//
// It takes a validated user, so User must not be empty, and an org, which is used
// byte for byte apart from surrounding spaces and tabs: no case is folded and
// nothing is normalised, so that two spellings are two tenants.
//
// An org becomes one segment of a KMS path and a value in KMS policy. So it has
// at most [MaxOrg] bytes of valid UTF-8, of which none is a slash, a backslash, a
// control or otherwise unprintable character, and it is refused when it holds ".."
// (stores refuse such a path), or "*", or is "." or "+" (policies read those as
// wildcards), or holds a comma (two identity headers, joined on the way).
func Tenant(c Caller) (string, error) {
	if strings.Trim(c.User, " \t") == "" {
		return "", &IdentityError{HeaderUser, "is missing: there is no validated user"}
	}
	org := strings.Trim(c.Org, " \t")
	bad := func(reason string) (string, error) { return "", &IdentityError{HeaderOrg, reason} }
	switch {
	case org == "":
		return bad("is missing: there is no org")
	case len(org) > MaxOrg:
		return bad("is longer than " + strconv.Itoa(MaxOrg) + " bytes")
	case !utf8.ValidString(org):
		return bad("is not UTF-8")
	case strings.ContainsAny(org, `/\`):
		return bad("holds a slash")
	case org == "." || org == "+" || strings.Contains(org, "..") || strings.Contains(org, "*"):
		return bad("could be read as more than a name")
	case strings.Contains(org, ","):
		return bad("holds a comma")
	}
	for _, r := range org {
		if !unicode.IsPrint(r) {
			return bad("holds an unprintable character")
		}
	}
	return org, nil
}

// identityField is one header and the part of a Caller it carries.
type identityField struct {
	header string
	text   func(*Caller) *string
	flag   func(*Caller) *bool
}

var identity = [...]identityField{
	{header: HeaderOrg, text: func(c *Caller) *string { return &c.Org }},
	{header: HeaderProject, text: func(c *Caller) *string { return &c.Project }},
	{header: HeaderUser, text: func(c *Caller) *string { return &c.User }},
	{header: HeaderUserName, text: func(c *Caller) *string { return &c.Name }},
	{header: HeaderUserEmail, text: func(c *Caller) *string { return &c.Email }},
	{header: HeaderUserOwner, text: func(c *Caller) *string { return &c.Owner }},
	{header: HeaderIsAdmin, flag: func(c *Caller) *bool { return &c.IsAdmin }},
	{header: HeaderIsOrgAdmin, flag: func(c *Caller) *bool { return &c.IsOrgAdmin }},
	{header: HeaderRequestID, text: func(c *Caller) *string { return &c.RequestID }},
	{header: HeaderActedBy, text: func(c *Caller) *string { return &c.ActedBy }},
}

// CallerFromHeader reads the identity headers. An [*IdentityError] is one that
// comes twice, in any spelling and even with the same value; one longer than
// [MaxIdentity], with a control character or that is not UTF-8; an X-Org-Id with
// a comma, which is how a proxy joins two; and a flag that is not a boolean. It does not say that the caller is
// a tenant: [Tenant] does.
func CallerFromHeader(h http.Header) (Caller, error) {
	var c Caller
	for i := range identity {
		f := &identity[i]
		var value string
		seen := 0
		for key, values := range h {
			if len(key) == len(f.header) && strings.EqualFold(key, f.header) {
				if seen += len(values); len(values) > 0 {
					value = values[0]
				}
			}
		}
		if seen > 1 {
			return Caller{}, &IdentityError{f.header, "comes more than once"}
		}
		if err := f.set(&c, value); err != nil {
			return Caller{}, err
		}
	}
	return c, nil
}

func (f *identityField) set(c *Caller, value string) error {
	if value == "" {
		return nil
	}
	if err := checkIdentity(f.header, value); err != nil {
		return err
	}
	if f.text != nil {
		*f.text(c) = value
		return nil
	}
	on, err := strconv.ParseBool(value)
	if err != nil {
		return &IdentityError{f.header, "is not a boolean"}
	}
	*f.flag(c) = on
	return nil
}

func checkIdentity(header, value string) error {
	if len(value) > MaxIdentity {
		return &IdentityError{header, "is longer than " + strconv.Itoa(MaxIdentity) + " bytes"}
	}
	for i := range len(value) {
		if b := value[i]; b < ' ' || b == 0x7f {
			return &IdentityError{header, "holds a control character"}
		}
	}
	if !utf8.ValidString(value) {
		return &IdentityError{header, "is not UTF-8"}
	}
	if header == HeaderOrg && strings.Contains(value, ",") {
		return &IdentityError{header, "holds a comma"}
	}
	return nil
}

// each calls f with every identity header the caller has something to say in.
func (c *Caller) each(f func(header, value string)) {
	for i := range identity {
		id := &identity[i]
		switch {
		case id.text != nil && *id.text(c) != "":
			f(id.header, *id.text(c))
		case id.flag != nil && *id.flag(c):
			f(id.header, "true")
		}
	}
}

// Header is the caller as identity headers, for a request to another service.
func (c Caller) Header() http.Header {
	h := make(http.Header)
	c.each(h.Set)
	return h
}
