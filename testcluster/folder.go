package testcluster

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// held keeps the locks of this process's state folders: as long as one is held
// its owner lives.
var held struct {
	sync.Mutex
	locks map[string]*os.File
}

// newStateFolder makes a folder for one cluster's files, locked for the life of
// this process. On the way it clears away the folders of owners that were
// killed before they could.
func newStateFolder(name string) (string, error) {
	root := filepath.Join(os.TempDir(), fmt.Sprintf("hanzo-k8s-%d", os.Getuid()))
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	sweep(root)
	dir, err := os.MkdirTemp(root, name+"-")
	if err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return "", err
	}
	held.Lock()
	defer held.Unlock()
	if held.locks == nil {
		held.locks = map[string]*os.File{}
	}
	held.locks[dir] = lock
	return dir, nil
}

// dropStateFolder removes a folder and gives its lock back.
func dropStateFolder(dir string) {
	held.Lock()
	defer held.Unlock()
	_ = os.RemoveAll(dir)
	if lock := held.locks[dir]; lock != nil {
		_ = lock.Close()
		delete(held.locks, dir)
	}
}

func sweep(root string) {
	entries, _ := os.ReadDir(root)
	for _, entry := range entries {
		info, err := entry.Info()
		// A folder this young may not have its lock yet.
		if err != nil || time.Since(info.ModTime()) < 10*time.Second {
			continue
		}
		dir := filepath.Join(root, entry.Name())
		lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
		if err == nil {
			err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			_ = lock.Close()
			if err != nil {
				continue
			}
		}
		_ = os.RemoveAll(dir)
	}
}
