//go:build !wasip1

package sdk

import "sync"

// Host is what a guest finds around it when it is built for the machine itself,
// which is how its tests run it: package sdktest has one. A method is the ABI's
// function of that name; Call is every function that takes one request.
type Host interface {
	Input(buf []byte) int32
	Emit(what int32, b []byte) int32
	Fail(b []byte) int32
	Next(handle int32, buf []byte) int32
	Close(handle int32) int32
	Sleep(ms int32) int32
	Log(b []byte) int32
	Call(function string, request []byte) int32
	Millis() int64
}

var (
	host  Host
	hosts sync.Mutex
)

// Serve runs one call, as the export handle does, in h.
func Serve(h Host) int32 {
	hosts.Lock()
	defer hosts.Unlock()
	host = h
	defer func() { host = nil }()
	return serve()
}

func hostInput(b []byte) int32              { return host.Input(b) }
func hostFail(b []byte) int32               { return host.Fail(b) }
func hostLog(b []byte) int32                { return host.Log(b) }
func hostClose(handle int32) int32          { return host.Close(handle) }
func hostSleep(ms int32) int32              { return host.Sleep(ms) }
func hostEmit(what int32, b []byte) int32   { return host.Emit(what, b) }
func hostNext(handle int32, b []byte) int32 { return host.Next(handle, b) }
func hostMillis() int64                     { return host.Millis() }

func hostGet(b []byte) int32                { return host.Call("get", b) }
func hostList(b []byte) int32               { return host.Call("list", b) }
func hostWatch(b []byte) int32              { return host.Call("watch", b) }
func hostLogs(b []byte) int32               { return host.Call("logs", b) }
func hostStats(b []byte) int32              { return host.Call("stats", b) }
func hostCan(b []byte) int32                { return host.Call("can", b) }
func hostVersion(b []byte) int32            { return host.Call("version", b) }
func hostCreate(b []byte) int32             { return host.Call("create", b) }
func hostApply(b []byte) int32              { return host.Call("apply", b) }
func hostDelete(b []byte) int32             { return host.Call("delete", b) }
func hostEvict(b []byte) int32              { return host.Call("evict", b) }
func hostCordon(b []byte) int32             { return host.Call("cordon", b) }
func hostExpand(b []byte) int32             { return host.Call("expand", b) }
func hostClustersList(b []byte) int32       { return host.Call("clusters_list", b) }
func hostClustersGet(b []byte) int32        { return host.Call("clusters_get", b) }
func hostClustersRegister(b []byte) int32   { return host.Call("clusters_register", b) }
func hostClustersDeregister(b []byte) int32 { return host.Call("clusters_deregister", b) }
