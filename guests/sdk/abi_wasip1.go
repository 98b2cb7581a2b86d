package sdk

import "unsafe"

//go:wasmexport handle
func handle() int32 { return serve() }

//go:wasmimport k8s input
func abiInput(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s emit
func abiEmit(what int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s fail
func abiFail(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s next
func abiNext(handle int32, p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s close
func abiClose(handle int32) int32

//go:wasmimport k8s sleep
func abiSleep(ms int32) int32

//go:wasmimport k8s log
func abiLog(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s get
func abiGet(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s list
func abiList(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s watch
func abiWatch(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s logs
func abiLogs(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s stats
func abiStats(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s can
func abiCan(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s version
func abiVersion(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s create
func abiCreate(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s apply
func abiApply(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s delete
func abiDelete(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s evict
func abiEvict(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s cordon
func abiCordon(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s expand
func abiExpand(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s clusters_list
func abiClustersList(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s clusters_get
func abiClustersGet(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s clusters_register
func abiClustersRegister(p unsafe.Pointer, n uint32) int32

//go:wasmimport k8s clusters_deregister
func abiClustersDeregister(p unsafe.Pointer, n uint32) int32

// The rest of the package calls these, each of which links its own import alone:
// a guest imports what it uses.

func ptr(b []byte) (unsafe.Pointer, uint32) {
	return unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))
}

func hostInput(b []byte) int32              { return abiInput(ptr(b)) }
func hostFail(b []byte) int32               { return abiFail(ptr(b)) }
func hostLog(b []byte) int32                { return abiLog(ptr(b)) }
func hostClose(handle int32) int32          { return abiClose(handle) }
func hostSleep(ms int32) int32              { return abiSleep(ms) }
func hostEmit(what int32, b []byte) int32   { p, n := ptr(b); return abiEmit(what, p, n) }
func hostNext(handle int32, b []byte) int32 { p, n := ptr(b); return abiNext(handle, p, n) }
func hostGet(b []byte) int32                { return abiGet(ptr(b)) }
func hostList(b []byte) int32               { return abiList(ptr(b)) }
func hostWatch(b []byte) int32              { return abiWatch(ptr(b)) }
func hostLogs(b []byte) int32               { return abiLogs(ptr(b)) }
func hostStats(b []byte) int32              { return abiStats(ptr(b)) }
func hostCan(b []byte) int32                { return abiCan(ptr(b)) }
func hostVersion(b []byte) int32            { return abiVersion(ptr(b)) }
func hostCreate(b []byte) int32             { return abiCreate(ptr(b)) }
func hostApply(b []byte) int32              { return abiApply(ptr(b)) }
func hostDelete(b []byte) int32             { return abiDelete(ptr(b)) }
func hostEvict(b []byte) int32              { return abiEvict(ptr(b)) }
func hostCordon(b []byte) int32             { return abiCordon(ptr(b)) }
func hostExpand(b []byte) int32             { return abiExpand(ptr(b)) }
func hostClustersList(b []byte) int32       { return abiClustersList(ptr(b)) }
func hostClustersGet(b []byte) int32        { return abiClustersGet(ptr(b)) }
func hostClustersRegister(b []byte) int32   { return abiClustersRegister(ptr(b)) }
func hostClustersDeregister(b []byte) int32 { return abiClustersDeregister(ptr(b)) }

//go:wasmimport wasi_snapshot_preview1 clock_time_get
func clockTimeGet(clock int32, precision int64, nanos unsafe.Pointer) int32

// hostMillis reads WASI's monotonic clock; package time would be an eighth of the
// module.
func hostMillis() int64 {
	const monotonic, precision = 1, 1_000_000
	var nanos int64
	clockTimeGet(monotonic, precision, unsafe.Pointer(&nanos))
	return nanos / 1_000_000
}
