// Package zip is the call plane's wire, both halves: a service on this machine
// calls another by the other's name and an operation's token, and typed structs
// cross as ZAP objects in frames over a unix socket.
//
//	ctx = zip.WithCaller(ctx, zip.Caller{Org: "acme", User: "u1"})
//	pods, err := zip.Ask[plane.PodsIn, plane.Pods](ctx, "k8s", plane.PodsList,
//		&plane.PodsIn{Cluster: "prod"})
//	var refused *zip.Error
//	if errors.As(err, &refused) {
//		log.Print(refused.Status, refused.Code, refused.Msg)
//	}
//
// # Objects
//
// [Marshal] and [Unmarshal] carry a Go struct. Its exported fields are its
// schema, in order of declaration: nothing on the wire is named, a field is an
// offset. That is the whole rule of compatibility too: fields are appended, and
// never inserted, reordered or retyped. [Layout], [Builder] and [View] do the
// same without a Go type, for code that is driven by a schema it was handed.
//
// A message is a 16-byte header and an object. Everything in it is
// little-endian.
//
//	header   "ZAP\0", version u16, flags u16, root offset u32, size u32
//	object   a fixed section at an 8-aligned position, and what it refers to
//	scalar   1, 2, 4 or 8 bytes, aligned to its own width; int and uint take 8
//	others   text, bytes, lists and structs: a slot of {offset u32, length u32},
//	         the offset from the slot itself and 0 for null
//	struct   a whole message
//	list     the length is the element count; each element is {length u32, bytes}
//
// # Frames
//
// A frame is a 4-byte big-endian length, 1 to [MaxFrame], and one message: a
// request or a response. A connection carries strictly one request and then its
// one response, over and over.
//
// # Serving
//
// [Server] hands each request to an [http.Handler], so that one handler serves
// an operation over HTTP and over the socket. [Listen] makes the socket, of
// which there is one per app name and machine user, and checks who connects.
package zip
