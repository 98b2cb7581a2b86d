package lens

import "unsafe"

// Fields are the fields of a message that are read, by number. Those of an
// embedded message, or of each of a repeated one, may be given too; of one whose
// fields are nil all may be read.
type Fields map[int]Fields

// Shape is what is read of objects of one kind, readied for reading it fast: what
// is not in it is passed over, and what is gets noted in one go.
type Shape struct {
	actions []action // for each message of the shape, one for each of its numbers
}

// An action says what to do with a field: pass over it, note where it is, or note
// it and go on within it by the actions from act*numbers on.
type action = uint8

const (
	pass action = 0
	note action = 1
	none action = 255 // of field 0, which there is none of

	numbers   = 64 // above the highest number of a field in a shape
	maxNodes  = 1<<8 - 2
	maxLevels = 12
)

// NewShape readies fields. It panics on a number above 63 and on more than 254
// messages or 12 levels.
func NewShape(fields Fields) *Shape {
	s := &Shape{actions: make([]action, 2*numbers)} // the first two are no messages
	s.add(fields, 0)
	return s
}

func (s *Shape) add(fields Fields, depth int) action {
	node := len(s.actions) / numbers
	if node > maxNodes || depth > maxLevels {
		panic("lens: a shape of too many messages")
	}
	s.actions = append(s.actions, make([]action, numbers)...)
	s.actions[node*numbers] = none
	for num, within := range fields {
		if num <= 0 || num >= numbers {
			panic("lens: a shape with a field that is not within 1 and 63")
		}
		act := note
		if within != nil {
			act = s.add(within, depth+1)
		}
		s.actions[node*numbers+num] = act
	}
	return action(node)
}

// everything notes every field, and goes into none.
var everything = func() (s Shape) {
	s.actions = make([]action, 3*numbers)
	for i := range s.actions {
		s.actions[i] = note
	}
	s.actions[root*numbers] = none
	return s
}()

// root is the place of a shape's outermost message.
const root = 2

// The wire types of protobuf that Kubernetes uses, and one of our own, of a field
// whose own fields are noted behind it.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
	wireNoted   = 7
)

// field is a field of a message: its tag in 16 bits, and then, in 24 bits each,
// where in the object its content starts and ends, without the length of what is
// length-delimited. No field is 0.
type field uint64

const (
	posBits = 24
	maxData = 1<<posBits - 1 // bytes of an object
	maxTag  = 1<<16 - 1
)

func made(tag uint64, start, end int) field {
	return field(tag<<(2*posBits) | uint64(start)<<posBits | uint64(end))
}

func (f field) number() int { return int(f >> (2*posBits + 3)) }
func (f field) wire() int   { return int(f >> (2 * posBits) & 7) }
func (f field) start() int  { return int(f >> posBits & maxData) }
func (f field) end() int    { return int(f & maxData) }

// noted is a field of the object at hand, and where the one after it and after
// all that is within it is noted.
type noted struct {
	field
	next uint32
}

// delimited says whether the field is text, bytes or a message.
func (f field) delimited() bool { return f.wire()&^(wireBytes^wireNoted) == wireBytes }

// scanning is where the scan of a message stands.
type scanning struct {
	notes      *noted // an array of room, of which used are in use
	used, room int
	actions    *action
	node       int // of the message at hand
	pos, end   int // in the object
	depth      int
	open       [maxLevels + 1]frame
}

// frame is a message that the one at hand is within: where it ends, its node, and
// the field that the one at hand is.
type frame struct{ end, node, at int }

// message notes what is in the shape of a message, which is the part of the
// object from start up to end.
func (f *Fault) message(s *Shape, start, end int) Message {
	m := Message{fault: f, from: uint32(f.used)}
	f.actions, f.node = &s.actions[0], root
	f.pos, f.end, f.depth = start, end, 0
	for {
		if f.used == f.room {
			f.room = max(128, 2*f.room)
			grown := make([]noted, f.room)
			copy(grown, unsafe.Slice(f.notes, f.used))
			f.notes = &grown[0]
		}
		if scan(&f.scanning, unsafe.Pointer(unsafe.SliceData(f.data)), len(f.data)-4) {
			break
		}
		if f.used < f.room && !f.odd() {
			for f.depth > 0 {
				f.leave()
			}
			break
		}
	}
	m.to = uint32(f.used)
	return m
}

// scan notes fields as long as they are what most fields are, with a tag of one
// or two bytes, and a length or a number of one or two. It says whether it came to
// the message's end. It calls nothing and checks no index but its own: in
// WebAssembly either would cost more than all the rest. last is where the last
// four bytes of the object start.
func scan(s *scanning, data unsafe.Pointer, last int) bool {
	actions := unsafe.Add(unsafe.Pointer(s.actions), s.node*numbers)
	pos, end, used, room := s.pos, s.end, s.used, s.room
	notes := unsafe.Pointer(s.notes)
	done := false
scan:
	for {
		if pos == end {
			if s.depth == 0 {
				done = true
				break
			}
			s.depth--
			up := (*frame)(unsafe.Add(unsafe.Pointer(&s.open), s.depth*int(unsafe.Sizeof(frame{}))))
			(*noted)(unsafe.Add(notes, up.at*int(unsafe.Sizeof(noted{})))).next = uint32(used)
			end, s.node = up.end, up.node
			actions = unsafe.Add(unsafe.Pointer(s.actions), up.node*numbers)
			continue
		}
		if pos > last {
			break
		}
		word := uint64(*(*uint32)(unsafe.Add(data, pos)))
		tag, start := word&0xff, pos+2
		after := start + int(word>>8&0x7f)
		if word&0x8087 != wireBytes {
			// Not a short text of a low number, which is what most are.
			word >>= 8
			start--
			if tag >= 0x80 {
				tag = tag&0x7f | word&0xff<<7
				word >>= 8
				start++
				if tag >= numbers<<3 {
					break
				}
			}
			after = start + 1
			long := word&0x80 != 0
			if long {
				if word&0x8000 != 0 {
					break
				}
				after++
			}
			switch tag & 7 {
			case wireVarint:
			case wireBytes:
				start, word = after, word&0xffff
				if long {
					word = word&0x7f | word&0xff00>>1
				} else {
					word &= 0x7f
				}
				after += int(word)
			default:
				break scan
			}
		}
		act := *(*action)(unsafe.Add(actions, tag>>3))
		if after > end {
			break
		}
		if act == pass {
			pos = after
			continue
		}
		if act == none || used == room {
			break
		}
		here := (*noted)(unsafe.Add(notes, used*int(unsafe.Sizeof(noted{}))))
		here.next = uint32(used + 1)
		used++
		if act == note || tag&7 != wireBytes {
			here.field = field(tag<<(2*posBits) | uint64(start)<<posBits | uint64(after))
			pos = after
			continue
		}
		here.field = field((tag|wireNoted)<<(2*posBits) | uint64(start)<<posBits | uint64(after))
		up := (*frame)(unsafe.Add(unsafe.Pointer(&s.open), s.depth*int(unsafe.Sizeof(frame{}))))
		up.end, up.node, up.at = end, s.node, used-1
		s.depth++
		pos, end, s.node = start, after, int(act)
		actions = unsafe.Add(unsafe.Pointer(s.actions), int(act)*numbers)
	}
	s.pos, s.end, s.used = pos, end, used
	return done
}

// odd goes on past a field of any kind. It is false for a fault.
func (f *Fault) odd() bool {
	here := f.field(f.data[:f.end], f.pos)
	if here == 0 {
		return false
	}
	act := pass
	if n := here.number(); n < numbers {
		act = *(*action)(unsafe.Add(unsafe.Pointer(f.actions), f.node*numbers+n))
	} else if f.actions == &everything.actions[0] {
		act = note
	}
	f.pos = here.end()
	if act == pass {
		return true
	}
	at := f.used
	f.used++
	to := f.at(uint32(at))
	to.field, to.next = here, uint32(at+1)
	if act != note && here.wire() == wireBytes {
		to.field |= wireNoted << (2 * posBits)
		f.open[f.depth] = frame{f.end, f.node, at}
		f.depth++
		f.pos, f.end, f.node = here.start(), here.end(), int(act)
	}
	return true
}

// at is what is noted at a place, which is not checked: it is always that of a
// message or of the field before.
func (f *Fault) at(place uint32) *noted {
	return (*noted)(unsafe.Add(unsafe.Pointer(f.notes), uintptr(place)*unsafe.Sizeof(noted{})))
}

// leave ends a message that a fault was met in.
func (f *Fault) leave() {
	f.depth--
	f.at(uint32(f.open[f.depth].at)).next = uint32(f.used)
}

// field decodes any field at pos, 0 for a fault.
func (f *Fault) field(data []byte, pos int) field {
	tag, start := varint(data, pos, f)
	if start < 0 {
		return 0
	}
	if tag>>3 == 0 || tag > 1<<32-1 {
		f.mark(ErrTag)
		return 0
	}
	end := start
	switch tag & 7 {
	case wireVarint:
		if _, end = varint(data, start, f); end < 0 {
			return 0
		}
	case wireBytes:
		n, at := varint(data, start, f)
		if at < 0 {
			return 0
		}
		if n > uint64(len(data)-at) {
			f.mark(ErrTruncated)
			return 0
		}
		start, end = at, at+int(n)
	case wireFixed64:
		end += 8
	case wireFixed32:
		end += 4
	default: // groups, which Kubernetes never had, and the two unassigned
		f.mark(ErrTag)
		return 0
	}
	if end > len(data) {
		f.mark(ErrTruncated)
		return 0
	}
	if tag > maxTag {
		tag = maxTag&^7 | tag&7
	}
	return made(tag, start, end)
}
