package testcluster

import "syscall"

// dieWithParent asks the kernel to kill the child when the thread that starts
// it ends. In a group of its own the child is spared a terminal's Ctrl-C, so
// that its owner can still talk to it while it cleans up.
func dieWithParent(group bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: group}
}
