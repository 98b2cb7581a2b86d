package host

// rehearsal answers the host functions while a guest warms up.
type rehearsal struct{}

func (r *rehearsal) answer(name string, m memory, a [3]uint32) int32 { return -1 }
