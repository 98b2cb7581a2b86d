package zip

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// Peer is the process at the other end of a connection, as the kernel says and
// not as it says itself.
type Peer struct{ PID, UID, GID int }

type peerKey struct{}

// PeerOf is the process a request came from; false outside a request of
// [Server].
func PeerOf(ctx context.Context) (Peer, bool) {
	p, ok := ctx.Value(peerKey{}).(Peer)
	return p, ok
}

// admit decides whether a server that runs as user self serves a peer: its own
// user and the users it was told of. Not root, unless it was told: who is root
// can become anybody, and should say whom.
func admit(p Peer, self int, also []int) error {
	if p.UID == self || slices.Contains(also, p.UID) {
		return nil
	}
	return fmt.Errorf("zip: a peer of user %d is not served by user %d", p.UID, self)
}

// trust decides whether a client that runs as user self talks to a server: its
// own user's or root's. It tells the server who its callers are, and what they
// ask for.
func trust(p Peer, self int) error {
	if p.UID == self || p.UID == 0 || self == 0 {
		return nil
	}
	return fmt.Errorf("zip: the socket is served by user %d and not by user %d", p.UID, self)
}

func self() int { return os.Geteuid() }
