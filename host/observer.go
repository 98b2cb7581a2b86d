package host

import "time"

// Observer hears what the sandbox does, for metrics. Its methods are called from
// many goroutines, some of them on the path of a call: they must not block.
type Observer interface {
	// Pool is by how much a module's instances changed, and those who wait for
	// one. A module that is being replaced has two pools for a while; once all are
	// closed the changes add up to nothing.
	Pool(module string, live, idle, waiting int)
	// Made is an instance made, and how long that took.
	Made(module string, took time.Duration)
	// Restored is an instance restored after a call: how many of its 4 KiB blocks
	// the call had changed, and how long it took.
	Restored(module string, blocks int, took time.Duration)
	// Verified is a sampled comparison of a restored instance with its snapshot.
	Verified(module string, equal bool)
	// Discarded is an instance thrown away, and why.
	Discarded(module string, why Discard)
	// Called is a call of an op that has ended; code is "" or the refusal's.
	Called(op, code string, s *Stats)
	// Serving is the state of the module that the host serves under a name, and
	// Removed once it serves none. What becomes of other files of that name does
	// not count.
	Serving(module string, s State)
	// Refused is a shipment refused.
	Refused()
	// Standing is how many refused shipments are neither withdrawn nor mended,
	// each time that changes.
	Standing(refused int)
}

// Discard is why an instance was thrown away.
type Discard string

// The reasons.
const (
	Trapped   Discard = "trapped"
	Exited    Discard = "exited"
	Exhausted Discard = "fuel_exhausted"
	Stopped   Discard = "stopped" // by a host function, or because the caller left
	Late      Discard = "deadline"
	Grew      Discard = "grew"     // its memory outgrew its snapshot
	Spent     Discard = "spent"    // its module holds state that cannot be restored
	Differed  Discard = "differed" // restored, and yet unlike its snapshot
	Surplus   Discard = "surplus"  // no longer needed
	Closed    Discard = "closed"   // its module was closed
)

// State is how far a module has come.
type State string

// The states of a module. A failed, replaced or removed one serves no new call.
// A refused one was shipped and never served.
const (
	Loading  State = "loading"
	Ready    State = "ready"
	Failed   State = "failed"
	Refused  State = "refused"
	Replaced State = "replaced"
	Removed  State = "removed"
)

type nobody struct{}

func (nobody) Pool(string, int, int, int)          {}
func (nobody) Made(string, time.Duration)          {}
func (nobody) Restored(string, int, time.Duration) {}
func (nobody) Verified(string, bool)               {}
func (nobody) Discarded(string, Discard)           {}
func (nobody) Called(string, string, *Stats)       {}
func (nobody) Serving(string, State)               {}
func (nobody) Refused()                            {}
func (nobody) Standing(int)                        {}
