package sdk

import (
	"iter"

	"github.com/hanzoai/k8s/guests/sdk/lens"
)

// ManagedBy and Hanzo are the label on every object that this service makes.
const (
	ManagedBy = "managed-by"
	Hanzo     = "hanzo-cloud"
)

// Labels is labels, which may be nil, with the service's own, which a caller
// cannot change.
func Labels(labels iter.Seq2[string, string]) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if labels != nil {
			for k, v := range labels {
				if !yield(k, v) {
					return
				}
			}
		}
		yield(ManagedBy, Hanzo)
	}
}

// Create makes an object of a built-in kind and returns it. An object of that
// name that is there already is a *[Failure] whose Reason is AlreadyExists.
func (c *Call) Create(resource, namespace string, object func(*Writer)) (lens.Message, error) {
	w := c.request
	w.reset()
	w.Str("resource", resource)
	w.Str("namespace", namespace)
	w.Object("object")
	object(w)
	w.End()
	return c.message(hostCreate(w.bytes()), nil)
}

// Apply makes an object of a kind what object writes, by server-side apply, and
// returns it. A field that somebody else owns is a *[Failure] whose Reason is
// Conflict and whose Causes name it.
func (c *Call) Apply(n Name, object func(*Writer)) (lens.Value, error) {
	w := c.request
	n.write(w)
	w.Object("object")
	object(w)
	w.End()
	return c.value(hostApply(w.bytes()))
}

// Delete removes an object and says whether there was one.
func (c *Call) Delete(n Name) (removed bool, err error) {
	n.write(c.request)
	v, err := c.value(hostDelete(c.request.bytes()))
	return v.Get("removed").Bool(), err
}

// Evict asks for the eviction of one pod, and of no later one of its name. gone
// means that there was no such pod any more. A disruption budget in the way is a
// *[Failure] of code blocked_by_pdb, which passes; several budgets at once are
// multiple_pdbs, which does not.
func (c *Call) Evict(namespace, pod, uid string) (gone bool, err error) {
	w := c.request
	w.reset()
	w.Str("namespace", namespace)
	w.Str("pod", pod)
	w.Str("uid", uid)
	v, err := c.value(hostEvict(w.bytes()))
	status, _ := v.Get("status").Int()
	return status == 404, err
}

// Cordon says whether a node may take new pods.
func (c *Call) Cordon(node string, schedulable bool) error {
	w := c.request
	w.reset()
	w.Str("node", node)
	w.Bool("schedulable", schedulable)
	return c.done(hostCordon(w.bytes()))
}

// Expand sets a claim's storage request, as long as the claim is still the one
// of that version, and returns the claim.
func (c *Call) Expand(namespace, name, storage, version string) (lens.Message, error) {
	w := c.request
	w.reset()
	w.Str("namespace", namespace)
	w.Str("name", name)
	w.Str("storage", storage)
	w.Str("version", version)
	return c.message(hostExpand(w.bytes()), nil)
}

// Ensure makes an object of a built-in kind unless it is there, and answers
// with its name and whether this call made it. One that is there is given to
// fits, which may be nil and refuses one that differs; one that is being deleted
// is a 409, terminating. Of two calls at once one makes it, and both succeed.
func (c *Call) Ensure(n Name, object func(*Writer), fits func(lens.Message) error) error {
	there, err := c.Get(n)
	created := false
	if f, ok := err.(*Failure); ok && f.Status == 404 {
		_, err = c.Create(n.Resource, n.Namespace, object)
		created = err == nil
		if f, ok := err.(*Failure); ok && f.Reason == "AlreadyExists" {
			there, err = c.Get(n)
		}
	}
	if err != nil {
		return err
	}
	if !created {
		if there.Meta().Terminating() {
			return Conflict("terminating", n.Name+" is being deleted")
		}
		if fits != nil {
			if err := fits(there); err != nil {
				return err
			}
		}
		if err := there.Err(); err != nil {
			return unreadable(err)
		}
	}
	return c.Answer(func(w *Writer) {
		w.Str("name", n.Name)
		w.Bool("created", created)
	})
}

// Remove deletes an object and answers whether there was one.
func (c *Call) Remove(n Name) error {
	removed, err := c.Delete(n)
	if err != nil {
		return err
	}
	return c.Answer(func(w *Writer) { w.Bool("removed", removed) })
}
