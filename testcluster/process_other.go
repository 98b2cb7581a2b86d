//go:build unix && !linux

package testcluster

import "syscall"

// dieWithParent has no kernel help outside Linux: a killed owner leaves its
// children behind there, and the next world does not sweep them.
func dieWithParent(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: group}
}
