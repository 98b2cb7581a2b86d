package host

import (
	"errors"
	"io"
	"sync"

	"github.com/hanzoai/k8s/registry"
)

const (
	pageItems = 500      // asked for at once; more costs memory, fewer costs round trips
	pageLeast = 16       // the fewest asked for by reason of size alone
	pageSize  = 4 << 20  // bytes aimed at
	pageMax   = 32 << 20 // bytes accepted; past it the page is asked for again, smaller
	pageKeep  = 8 << 20  // bytes of the largest buffer kept for the next page
	pageSmall = 1 << 20  // bytes up to which a buffer grows by doubling
	pageUsual = 3 << 20  // bytes that it gets next, which a page of ordinary objects fits in
	maxPages  = 10_000   // in one namespace of one list
)

// maxObject is the largest single object accepted, in bytes. etcd holds 1.5 MiB.
const maxObject = 8 << 20

// page is one answer of the cluster, and where its items are.
type page struct {
	body             []byte
	items            []span
	apiVersion, kind string
	version, next    string // resourceVersion and continue

	home pool
}

// Lists and single objects have pools of their own, so that no get holds a
// list's buffer.
var pages, objects sync.Pool

type pool = *sync.Pool

func newPage(home pool) *page {
	if p, ok := home.Get().(*page); ok {
		return p
	}
	return &page{body: make([]byte, 0, 32<<10), home: home}
}

// free gives the page's memory back. What was read from it is void.
func (p *page) free() {
	keep := pageKeep
	if p.home == &objects {
		keep = 256 << 10
	}
	if cap(p.body) <= keep {
		*p = page{body: p.body[:0], items: p.items[:0], home: p.home}
		p.home.Put(p)
	}
}

// errLarge is a body past its cap.
var errLarge = errors.New("the body is too large")

// read fills the page from r, max bytes at most.
func (p *page) read(r io.Reader, max int) error {
	p.body = p.body[:0]
	for {
		if len(p.body) == cap(p.body) {
			size := 2*cap(p.body) + 4096
			if size > pageSmall && size < pageUsual {
				size = pageUsual
			}
			grown := make([]byte, len(p.body), min(size, max+1))
			copy(grown, p.body)
			p.body = grown
		}
		n, err := r.Read(p.body[len(p.body):min(cap(p.body), max+1)])
		p.body = p.body[:len(p.body)+n]
		switch {
		case len(p.body) > max:
			return errLarge
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// split finds the page's items and checks that it is the list that was asked for.
func (p *page) split(t *target) *registry.Refusal {
	if len(p.body) == 0 {
		return upstream("the cluster answered a list with nothing")
	}
	p.items = p.items[:0]
	var err error
	if t.protobuf {
		err = p.splitProtobuf()
	} else {
		err = p.splitJSON()
	}
	if err != nil {
		return malformed(err)
	}
	return t.listed(p.apiVersion, p.kind)
}

// check tells whether the body is the one object that was asked for, and where.
func (p *page) check(t *target) (span, *registry.Refusal) {
	if len(p.body) == 0 {
		return span{}, upstream("the cluster answered with nothing")
	}
	var message span
	var err error
	if t.protobuf {
		p.apiVersion, p.kind, message, err = envelope(p.body)
	} else {
		apiVersion, kind := want{name: "apiVersion"}, want{name: "kind"}
		err = whole(p.body, &apiVersion, &kind)
		p.apiVersion, p.kind = apiVersion.text(), kind.text()
		message = span{0, len(p.body)}
	}
	if err != nil {
		return span{}, malformed(err)
	}
	if p.apiVersion != t.apiVersion() || !t.isKind(p.kind) {
		return span{}, upstream("the cluster answered with something other than one of " + t.resource)
	}
	return message, nil
}

// ask is how many items to ask for after a page of this size.
func (p *page) ask() int {
	if len(p.items) == 0 || len(p.body) == 0 {
		return pageItems
	}
	return max(pageLeast, min(pageItems, pageSize*len(p.items)/len(p.body)))
}
