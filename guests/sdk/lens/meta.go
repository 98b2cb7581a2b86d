package lens

// The fields that every object has.
const (
	Metadata = 1
	Spec     = 2
	Status   = 3
)

// The fields of metav1.ObjectMeta.
const (
	MetaName              = 1
	MetaNamespace         = 3
	MetaUID               = 5
	MetaResourceVersion   = 6
	MetaCreationTimestamp = 8
	MetaDeletionTimestamp = 9
	MetaLabels            = 11
	MetaAnnotations       = 12
	MetaOwnerReferences   = 13
)

// The fields of metav1.OwnerReference.
const (
	OwnerKind       = 1
	OwnerName       = 3
	OwnerAPIVersion = 5
	OwnerController = 6
)

// Meta is an object's metadata.
type Meta struct{ Message }

// Meta is the metadata of an object.
func (m Message) Meta() Meta { return Meta{m.Sub(Metadata)} }

// Namespace is empty for an object that has none.
func (m Meta) Namespace() string { return m.Str(MetaNamespace) }

// Name is the object's name.
func (m Meta) Name() string { return m.Str(MetaName) }

// UID tells an object from a later one of the same name.
func (m Meta) UID() string { return m.Str(MetaUID) }

// Terminating says whether the object is being deleted.
func (m Meta) Terminating() bool { return m.Has(MetaDeletionTimestamp) }

// Annotation is one annotation, and whether it is there.
func (m Meta) Annotation(key string) (string, bool) { return m.Key(MetaAnnotations, key) }

// Owner is the owner reference marked as the controller, and whether there is
// one. An owner without that mark does not manage the object.
func (m Meta) Owner() (owner Message, ok bool) {
	for o := m.Each(MetaOwnerReferences); o.Next(); {
		if o.Bool(OwnerController) {
			return o.Message, true
		}
	}
	return Message{}, false
}

// Controller is the controlling owner as "Kind/name", empty for none.
func (m Meta) Controller() string {
	o, ok := m.Owner()
	if !ok {
		return ""
	}
	return o.Str(OwnerKind) + "/" + o.Str(OwnerName)
}
