package host

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// The WASI functions are there because a toolchain's runtime imports them, not
// to be of use: there are no files, arguments, environment or sockets, and no
// time of day. What works is a monotonic clock, sleeping, randomness, and a
// crash report on standard error.

// WASI's error numbers.
const (
	wasiOK    = 0
	wasiBadF  = 8
	wasiFault = 21
	wasiInval = 28
	wasiNoSys = 52
)

// Costs in fuel of WASI functions that do something.
const (
	clockFuel  = 200
	randomFuel = 4 // for each byte
	writeFuel  = 4 // for each byte
)

// maxRandom is the largest number of random bytes given at once.
const maxRandom = 64 << 10

// errExited is a guest that called proc_exit.
var errExited = errors.New("the guest exited")

// booted is the zero of the guests' clock. It says nothing of the time of day.
var booted = time.Now()

type wasiFunc struct {
	params string // "i" for i32, "I" for i64
	run    func(r *run, mem api.Memory, a []uint64) uint32
	void   bool
}

func wasiFixed(params string, errno uint32) wasiFunc {
	return wasiFunc{params: params, run: func(*run, api.Memory, []uint64) uint32 { return errno }}
}

var wasiFunctions = map[string]wasiFunc{
	"args_get":                wasiFixed("ii", wasiOK),
	"args_sizes_get":          {params: "ii", run: wasiNone},
	"environ_get":             wasiFixed("ii", wasiOK),
	"environ_sizes_get":       {params: "ii", run: wasiNone},
	"clock_res_get":           {params: "ii", run: wasiResolution},
	"clock_time_get":          {params: "iIi", run: wasiClock},
	"fd_advise":               wasiFixed("iIIi", wasiBadF),
	"fd_allocate":             wasiFixed("iII", wasiBadF),
	"fd_close":                wasiFixed("i", wasiBadF),
	"fd_datasync":             wasiFixed("i", wasiBadF),
	"fd_fdstat_get":           {params: "ii", run: wasiStat},
	"fd_fdstat_set_flags":     wasiFixed("ii", wasiBadF),
	"fd_fdstat_set_rights":    wasiFixed("iII", wasiBadF),
	"fd_filestat_get":         wasiFixed("ii", wasiBadF),
	"fd_filestat_set_size":    wasiFixed("iI", wasiBadF),
	"fd_filestat_set_times":   wasiFixed("iIIi", wasiBadF),
	"fd_pread":                wasiFixed("iiiIi", wasiBadF),
	"fd_prestat_dir_name":     wasiFixed("iii", wasiBadF),
	"fd_prestat_get":          wasiFixed("ii", wasiBadF),
	"fd_pwrite":               wasiFixed("iiiIi", wasiBadF),
	"fd_read":                 wasiFixed("iiii", wasiBadF),
	"fd_readdir":              wasiFixed("iiiIi", wasiBadF),
	"fd_renumber":             wasiFixed("ii", wasiBadF),
	"fd_seek":                 wasiFixed("iIii", wasiBadF),
	"fd_sync":                 wasiFixed("i", wasiBadF),
	"fd_tell":                 wasiFixed("ii", wasiBadF),
	"fd_write":                {params: "iiii", run: wasiWrite},
	"path_create_directory":   wasiFixed("iii", wasiNoSys),
	"path_filestat_get":       wasiFixed("iiiii", wasiNoSys),
	"path_filestat_set_times": wasiFixed("iiiiIIi", wasiNoSys),
	"path_link":               wasiFixed("iiiiiii", wasiNoSys),
	"path_open":               wasiFixed("iiiiiIIii", wasiNoSys),
	"path_readlink":           wasiFixed("iiiiii", wasiNoSys),
	"path_remove_directory":   wasiFixed("iii", wasiNoSys),
	"path_rename":             wasiFixed("iiiiii", wasiNoSys),
	"path_symlink":            wasiFixed("iiiii", wasiNoSys),
	"path_unlink_file":        wasiFixed("iii", wasiNoSys),
	"poll_oneoff":             {params: "iiii", run: wasiPoll},
	"proc_exit":               {params: "i", run: wasiExit, void: true},
	"proc_raise":              wasiFixed("i", wasiNoSys),
	"random_get":              {params: "ii", run: wasiRandom},
	"sched_yield":             {run: wasiYield},
	"sock_accept":             wasiFixed("iii", wasiNoSys),
	"sock_recv":               wasiFixed("iiiiii", wasiNoSys),
	"sock_send":               wasiFixed("iiiii", wasiNoSys),
	"sock_shutdown":           wasiFixed("ii", wasiNoSys),
}

func (f wasiFunc) types() (params, results []api.ValueType) {
	for _, c := range f.params {
		if c == 'I' {
			params = append(params, api.ValueTypeI64)
		} else {
			params = append(params, api.ValueTypeI32)
		}
	}
	if !f.void {
		results = []api.ValueType{api.ValueTypeI32}
	}
	return params, results
}

// provideWASI instantiates the stubbed WASI module.
func provideWASI(ctx context.Context, rt wazero.Runtime) error {
	b := rt.NewHostModuleBuilder(wasiModule)
	for name, f := range wasiFunctions {
		params, results := f.types()
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, mod api.Module, stack []uint64) {
			r := runOf(ctx)
			if r == nil {
				panic(errNoRun)
			}
			r.pause()
			errno := f.run(r, mod.Memory(), stack)
			if !f.void {
				stack[0] = uint64(errno)
			}
		}), params, results).Export(name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// burn takes fuel for work done outside the guest's code.
func (r *run) burn(n int64) {
	if r.meter.addFuel != nil {
		r.meter.addFuel(-n)
	}
}

func wasiNone(_ *run, mem api.Memory, a []uint64) uint32 {
	if !mem.WriteUint32Le(uint32(a[0]), 0) || !mem.WriteUint32Le(uint32(a[1]), 0) {
		return wasiFault
	}
	return wasiOK
}

func wasiResolution(_ *run, mem api.Memory, a []uint64) uint32 {
	if !mem.WriteUint64Le(uint32(a[1]), uint64(time.Microsecond)) {
		return wasiFault
	}
	return wasiOK
}

func wasiClock(r *run, mem api.Memory, a []uint64) uint32 {
	r.burn(clockFuel)
	now := time.Since(booted).Truncate(time.Microsecond)
	if !mem.WriteUint64Le(uint32(a[2]), uint64(now)) {
		return wasiFault
	}
	return wasiOK
}

// wasiStat describes standard output and error as character devices.
func wasiStat(_ *run, mem api.Memory, a []uint64) uint32 {
	if fd := uint32(a[0]); fd > 2 {
		return wasiBadF
	}
	stat := make([]byte, 24)
	stat[0] = 2
	if !mem.Write(uint32(a[1]), stat) {
		return wasiFault
	}
	return wasiOK
}

// wasiWrite keeps the first bytes written to standard output and error, which
// is where a Go guest says why it panics.
func wasiWrite(r *run, mem api.Memory, a []uint64) uint32 {
	fd, vec, n, written := uint32(a[0]), uint32(a[1]), uint32(a[2]), uint32(a[3])
	if fd != 1 && fd != 2 {
		return wasiBadF
	}
	if n > 1024 {
		return wasiInval
	}
	var total uint32
	for i := range n {
		ptr, ok := mem.ReadUint32Le(vec + 8*i)
		size, ok2 := mem.ReadUint32Le(vec + 8*i + 4)
		b, ok3 := mem.Read(ptr, size)
		if !ok || !ok2 || !ok3 {
			return wasiFault
		}
		r.burn(writeFuel * int64(size))
		if room := maxCrash - len(r.crash); room > 0 {
			r.crash = append(r.crash, b[:min(room, len(b))]...)
		}
		total += size
	}
	if !mem.WriteUint32Le(written, total) {
		return wasiFault
	}
	return wasiOK
}

func wasiRandom(r *run, mem api.Memory, a []uint64) uint32 {
	if uint32(a[1]) > maxRandom {
		return wasiInval
	}
	r.burn(randomFuel * int64(uint32(a[1])))
	b, ok := mem.Read(uint32(a[0]), uint32(a[1]))
	if !ok {
		return wasiFault
	}
	rand.Read(b)
	return wasiOK
}

func wasiYield(r *run, _ api.Memory, _ []uint64) uint32 {
	r.burn(clockFuel)
	return wasiOK
}

func wasiExit(*run, api.Memory, []uint64) uint32 { panic(errExited) }

// wasiPoll sleeps until the first of the clocks subscribed to. A subscription to
// a file answers that there is none.
func wasiPoll(r *run, mem api.Memory, a []uint64) uint32 {
	refuse(r.meter.hostCall())
	in, out, n, stored := uint32(a[0]), uint32(a[1]), uint32(a[2]), uint32(a[3])
	if n == 0 || n > 64 {
		return wasiInval
	}
	subs, ok := mem.Read(in, 48*n)
	if !ok {
		return wasiFault
	}
	var wait time.Duration
	clock := -1
	var events []byte
	event := func(i int, errno uint16) {
		e := make([]byte, 32)
		copy(e, subs[48*i:48*i+8])
		binary.LittleEndian.PutUint16(e[8:], errno)
		e[10] = subs[48*i+8]
		events = append(events, e...)
	}
	for i := range int(n) {
		s := subs[48*i:]
		if s[8] != 0 {
			event(i, wasiBadF)
			continue
		}
		d := time.Duration(min(binary.LittleEndian.Uint64(s[24:]), uint64(time.Hour)))
		if s[40]&1 != 0 { // absolute
			d = time.Duration(min(binary.LittleEndian.Uint64(s[24:]), 1<<62)) - time.Since(booted)
		}
		if clock < 0 || d < wait {
			clock, wait = i, d
		}
	}
	if len(events) == 0 {
		if wait > 0 {
			r.meter.enter()
			t := time.NewTimer(min(wait, time.Hour))
			select {
			case <-t.C:
			case <-r.Done():
			case <-r.life():
			}
			t.Stop()
			r.meter.leave()
		}
		event(clock, wasiOK)
	}
	if !mem.Write(out, events) || !mem.WriteUint32Le(stored, uint32(len(events)/32)) {
		return wasiFault
	}
	return wasiOK
}
