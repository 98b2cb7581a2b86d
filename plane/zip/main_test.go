package zip

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// TestMain fails a suite that leaves goroutines or descriptors behind.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	goroutines, fds := runtime.NumGoroutine(), openFDs()
	code := m.Run()
	CloseIdle()
	deadline := time.Now().Add(5 * time.Second)
	// Some slack: the runtime and the fuzzer keep a few of their own.
	for runtime.NumGoroutine() > goroutines+1 || openFDs() > fds+4 {
		if time.Now().After(deadline) {
			fmt.Printf("left behind: goroutines %d to %d, descriptors %d to %d\n", goroutines, runtime.NumGoroutine(), fds, openFDs())
			pprof.Lookup("goroutine").WriteTo(os.Stdout, 1)
			code = max(code, 1)
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	os.Exit(code)
}

func openFDs() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}
