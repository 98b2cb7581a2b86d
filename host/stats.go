package host

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/hanzoai/k8s/registry"
)

const (
	kubelets    = 16 // asked at once
	kubeletWait = 5 * time.Second
	maxSummary  = 8 << 20 // bytes
	maxKubelets = 10_000
)

// stats reads the summary of every node's kubelet. A kubelet that does not
// answer costs its own reading and no other. Whether its node is Ready makes no
// difference: it is asked. The path is fixed, and nothing but a GET is sent: the
// same right would let a request run commands on the node.
func (c *call) stats(*noRequest) (stream, *registry.Refusal) {
	t, r := c.granted(nodes, "", "list")
	if r != nil {
		return nil, r
	}
	if _, r := c.granted(nodes, "proxy", "get"); r != nil {
		return nil, r
	}
	scope, r := c.scope(t, "")
	if r != nil {
		return nil, r
	}
	list := c.wholeList(t, scope, selectors("", ""))
	defer list.close()
	var names []string
	for {
		item, ok, r := list.next()
		if r != nil {
			return nil, r
		}
		if !ok {
			break
		}
		_, name := nameOfProtobuf(item)
		if !isName(string(name)) || len(names) == maxKubelets {
			return nil, upstream("the cluster's nodes cannot be read")
		}
		names = append(names, string(name))
	}
	s := &summaries{c: c, names: names}
	s.ctx, s.cancel = context.WithCancel(c.ctx)
	s.readings = newFan(len(names), kubelets, func(i int) fetched { return s.ask(t, names[i]) })
	return s, nil
}

// summaries hands over one reading per node, in the order of the nodes.
type summaries struct {
	c      *call
	ctx    context.Context
	cancel context.CancelFunc

	names     []string
	readings  *fan[fetched]
	at        int
	item      []byte
	forbidden *registry.Refusal // the cluster's, while it has forbidden every one
}

func (s *summaries) ask(t *target, name string) fetched {
	ctx, cancel := context.WithTimeout(s.ctx, kubeletWait)
	defer cancel()
	p, r := s.c.fetch(ctx, "get", "v1/nodes/proxy", &registry.Request{
		Method: http.MethodGet, Path: t.path("", name, "proxy", "stats", "summary"), Accept: "application/json",
	}, &objects, maxSummary)
	if r != nil {
		return fetched{bad: r}
	}
	node, volumes := want{name: "node"}, want{name: "pods"}
	if err := whole(p.body, &node, &volumes); err != nil || !node.isObject() {
		p.free()
		return fetched{bad: upstream("not a summary")}
	}
	return fetched{page: p}
}

func (s *summaries) next() ([]byte, bool, *registry.Refusal) {
	wait := s.readings.next()
	if wait == nil {
		return nil, false, s.forbidden
	}
	var f fetched
	select {
	case f = <-wait:
	case <-s.ctx.Done():
		return nil, false, ending(s.ctx)
	}
	if r := ending(s.c.ctx); r != nil {
		return nil, false, r
	}
	name := s.names[s.at]
	if s.at++; s.at == 1 && f.bad != nil && f.bad.Code == "forbidden" {
		s.forbidden = f.bad
	}
	s.item = strconv.AppendQuote(append(s.item[:0], `{"node":`...), name)
	if f.bad != nil {
		if f.bad.Code != "forbidden" {
			s.forbidden = nil
		}
		s.item = append(s.item, `,"failed":`...)
		s.item = append(strconv.AppendQuote(s.item, whySilent(f.bad)), '}')
		return s.item, true, nil
	}
	s.forbidden = nil
	s.item = append(s.item, `,"summary":`...)
	s.item = append(append(s.item, f.page.body...), '}')
	f.page.free()
	return s.item, true, nil
}

// whySilent is a stable code for what became of a reading. It never says where
// the kubelet is.
func whySilent(r *registry.Refusal) string {
	if kubelet := logRefusal(r); r.Code == "deadline" || kubelet.Code == "kubelet_unreachable" {
		return "kubelet_unreachable"
	}
	return r.Code
}

func (s *summaries) trailer() []byte { return nil }
func (s *summaries) close()          { s.cancel() }
