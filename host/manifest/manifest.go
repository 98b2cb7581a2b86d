// Package manifest defines what a guest module says of itself: the ops it
// answers, their routes, schemas, prose and limits, and the grants they need.
// The host, the router and every projection learn an op from here alone.
package manifest

import "encoding/json"

// Section is the name of the custom section that holds a module's manifest, as
// one JSON object.
const Section = "k8s.manifest"

// ABI is the version of the guest ABI (host/ABI.md) that this host speaks.
const ABI = 1

// MaxSize is the largest manifest accepted, in bytes.
const MaxSize = 1 << 20

// Manifest describes one module.
type Manifest struct {
	ABI     int      `json:"abi"`
	Name    string   `json:"name"`    // a DNS label, unique among loaded modules
	Version string   `json:"version"` // v<major>.<minor>.<patch>
	Doc     string   `json:"doc,omitempty"`
	Imports []string `json:"imports"` // the functions of module "k8s" it may import
	Ops     []Op     `json:"ops"`
}

// Op is one operation: a REST route, a peer op and an OpenAPI operation at once.
type Op struct {
	Token    string          `json:"token"`            // k8s_<group>_<verb>, the op's one identity
	Method   string          `json:"method"`           // GET, POST, PUT or DELETE
	Path     string          `json:"path"`             // below /v1/k8s, parameters in braces, the first segment none and not Reserved
	Status   int             `json:"status,omitempty"` // of a success: 200 if zero, or 201
	Summary  string          `json:"summary"`          // the first sentence of Doc
	Doc      string          `json:"doc"`
	Example  json.RawMessage `json:"example,omitempty"`  // an In
	Response json.RawMessage `json:"response,omitempty"` // the Out that Example gets
	Grants   []Grant         `json:"grants,omitempty"`
	In       []Field         `json:"in,omitempty"`
	Out      []Field         `json:"out,omitempty"`
	Items    string          `json:"items,omitempty"` // the Out list that is emitted item by item
	Long     bool            `json:"long,omitempty"`  // waits by design: its own bulkhead and deadline
	Limits   Limits          `json:"limits,omitzero"`
}

// Kind is the kind of a value on both wires.
type Kind string

// The kinds of a field. A map is an object of strings in JSON and a list of
// key/value structs in ZAP; raw is any JSON value, and bytes in ZAP.
const (
	String  Kind = "string"
	Bool    Kind = "bool"
	Integer Kind = "integer" // 64 bit
	Map     Kind = "map"
	Raw     Kind = "raw"
	Object  Kind = "object" // Fields
	List    Kind = "list"   // of Of, whose Fields are set for objects
)

// Format narrows a string field; what does not fit is refused before a guest runs.
type Format string

// The formats of a string.
const (
	Name      Format = "name"     // DNS-1123 subdomain, at most 253
	Label     Format = "label"    // DNS-1123 label, at most 63
	Selector  Format = "selector" // a label selector as the API server parses it
	KindName  Format = "kind"     // a kind of the closed table
	LabelKeys Format = "labels"   // on a map: label keys and values
)

// Field is one field of an object, in ZAP's field order.
type Field struct {
	Name     string   `json:"name"`
	Kind     Kind     `json:"kind"`
	Of       Kind     `json:"of,omitempty"`     // element kind of a list: string, integer or object
	Fields   []Field  `json:"fields,omitempty"` // of an object, or of a list's objects
	Doc      string   `json:"doc,omitempty"`
	Required bool     `json:"required,omitempty"`
	Secret   bool     `json:"secret,omitempty"` // never enters guest memory
	Format   Format   `json:"format,omitempty"`
	Enum     []string `json:"enum,omitempty"`
	Min      *int64   `json:"min,omitempty"` // of an integer
	Max      int64    `json:"max,omitempty"` // of an integer: the value; of a string, map, list or raw: bytes or entries
}

// Grant is one privilege on the cluster, in RBAC's words. Exactly one of
// Resource, Kinds and URL is set.
type Grant struct {
	Verbs       []string `json:"verbs"`
	Group       string   `json:"group,omitempty"` // "" is the core group
	Version     string   `json:"version,omitempty"`
	Resource    string   `json:"resource,omitempty"` // plural, lower case
	Subresource string   `json:"subresource,omitempty"`
	Cluster     bool     `json:"cluster,omitempty"` // the resource is not namespaced
	Kinds       bool     `json:"kinds,omitempty"`   // every kind of the closed table
	URL         string   `json:"url,omitempty"`     // a non-resource URL
}

// Limits bound one call; zero means the host's default, and an operator's
// ceiling caps each.
type Limits struct {
	Fuel        int64 `json:"fuel,omitempty"`        // units, once per call
	FuelPerItem int64 `json:"fuelPerItem,omitempty"` // units, added with each item delivered
	MemoryPages int64 `json:"memoryPages,omitempty"` // of 64 KiB
	HostCalls   int64 `json:"hostCalls,omitempty"`   // beyond one next and one emit per item
	BytesIn     int64 `json:"bytesIn,omitempty"`     // from the cluster, decompressed
	Items       int64 `json:"items,omitempty"`
	BytesOut    int64 `json:"bytesOut,omitempty"`
	HostMillis  int64 `json:"hostMillis,omitempty"` // in any one host function
	Millis      int64 `json:"millis,omitempty"`     // the whole call
}
