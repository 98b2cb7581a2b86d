package registry

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
)

// Memory is a [Store] in this process's memory. It is gone with the process.
type Memory struct {
	mu    sync.Mutex
	items map[string]*memoryItem
}

// keptVersions is how many versions of an item are kept, as a KV engine does
// that has not been told otherwise.
const keptVersions = 10

type memoryItem struct {
	newest int
	live   map[int][]byte
}

// NewMemory is an empty store.
func NewMemory() *Memory { return &Memory{items: map[string]*memoryItem{}} }

// Get implements [Store].
func (m *Memory) Get(_ context.Context, _ Org, ref string, version int) ([]byte, int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	item, ok := m.items[ref]
	if !ok {
		return nil, 0, nil
	}
	if version == 0 {
		version = item.newest
	}
	return bytes.Clone(item.live[version]), version, nil
}

// Versions implements [Store].
func (m *Memory) Versions(_ context.Context, _ Org, ref string) (newest int, live []int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	item, ok := m.items[ref]
	if !ok {
		return 0, nil, nil
	}
	for v := range item.live {
		live = append(live, v)
	}
	slices.Sort(live)
	return item.newest, live, nil
}

// Put implements [Store].
func (m *Memory) Put(_ context.Context, _ Org, ref string, data []byte, cas int) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	item, ok := m.items[ref]
	if !ok {
		item = &memoryItem{live: map[int][]byte{}}
	}
	if item.newest != cas {
		return 0, ErrVersion
	}
	m.items[ref] = item
	item.newest++
	item.live[item.newest] = bytes.Clone(data)
	delete(item.live, item.newest-keptVersions)
	return item.newest, nil
}

// List implements [Store].
func (m *Memory) List(_ context.Context, _ Org, ref string) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	for key := range m.items {
		rest, ok := strings.CutPrefix(key, ref+"/")
		if !ok {
			continue
		}
		if name, _, folder := strings.Cut(rest, "/"); folder {
			rest = name + "/"
		}
		names = append(names, rest)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Destroy implements [Store].
func (m *Memory) Destroy(_ context.Context, _ Org, ref string, versions ...int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(versions) == 0 {
		delete(m.items, ref)
		return nil
	}
	if item, ok := m.items[ref]; ok {
		for _, v := range versions {
			delete(item.live, v)
		}
	}
	return nil
}
