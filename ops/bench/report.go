package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// cell is one server at one scenario with so many callers.
type cell struct {
	scenario string
	width    int
	name     string
}

// report is all that was measured.
type report struct {
	begun   time.Time
	out     io.Writer
	options options

	table map[cell][]sample
	items []int // rows of each scenario's answer
	peaks map[string][]float64

	cold, warm, idleCold, idle []float64
	restore                    []float64 // us
	added, native              []float64 // us
	fuelCost                   []float64 // percent
	perPod                     []float64 // us
}

// spread is a median, and how far from it the rounds went.
type spread struct{ median, min, max float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return spread{(sorted[(n-1)/2] + sorted[n/2]) / 2, sorted[0], sorted[n-1]}
}

// around is the half of the range, in percent of the median.
func (s spread) around() float64 {
	if s.median == 0 {
		return 0
	}
	return 50 * (s.max - s.min) / s.median
}

func column(samples []sample, of func(sample) float64) spread {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = of(s)
	}
	return spreadOf(values)
}

var columns = []struct {
	name   string
	format string
	of     func(sample) float64
}{
	{"wall ms", "%.2f", func(s sample) float64 { return float64(s.wall) / float64(time.Millisecond) }},
	{"cpu ms", "%.2f", func(s sample) float64 { return float64(s.cpu) / float64(time.Millisecond) }},
	{"calls/s", "%.1f", func(s sample) float64 { return s.rate }},
	{"allocs", "%.0f", func(s sample) float64 { return s.mallocs }},
	{"alloc KB", "%.0f", func(s sample) float64 { return s.alloc / 1000 }},
	{"bytes KB", "%.1f", func(s sample) float64 { return s.bytes / 1000 }},
}

func (r *report) print() {
	for i, s := range scenarios() {
		if !strings.Contains(s.name, r.options.only) {
			continue
		}
		fmt.Fprintf(r.out, "\n%s (%d rows): per call, median ± half the range over rounds, and times ours\n", s.name, r.items[i])
		w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(w, "callers\tserver\t")
		for _, c := range columns {
			fmt.Fprintf(w, "%s\t\t", c.name)
		}
		fmt.Fprintln(w)
		for _, width := range widths {
			for _, name := range names() {
				r.row(w, cell{s.name, width, name})
			}
		}
		w.Flush()
	}
	fmt.Fprintf(r.out, "\nmemory of one call for all pods: growth of the resident memory of a fresh process, its peak (VmHWM) less what it was\n")
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	mine := spreadOf(r.peaks[ours]).median
	for _, name := range names() {
		s := spreadOf(r.peaks[name])
		fmt.Fprintf(w, "%s\t%.1f MB\t±%.0f%%\t%.2fx\t\n", name, s.median/1e6, s.around(), s.median/mine)
	}
	w.Flush()
	r.targets()
}

func (r *report) row(w io.Writer, at cell) {
	samples := r.table[at]
	if len(samples) == 0 {
		return
	}
	mine := r.table[cell{at.scenario, at.width, ours}]
	fmt.Fprintf(w, "%d\t%s\t", at.width, at.name)
	for _, c := range columns {
		s := column(samples, c.of)
		fmt.Fprintf(w, c.format+" ±%.0f%%\t", s.median, s.around())
		if base := column(mine, c.of).median; base > 0 {
			fmt.Fprintf(w, "%.2fx\t", s.median/base)
		} else {
			fmt.Fprint(w, "\t")
		}
	}
	fmt.Fprintln(w)
}

// ratio is ours to another's, of one column.
func (r *report) ratio(scenario string, width, column_ int, name string) float64 {
	of := columns[column_].of
	other := column(r.table[cell{scenario, width, name}], of).median
	return column(r.table[cell{scenario, width, ours}], of).median / other
}

func (r *report) targets() {
	fmt.Fprintln(r.out, "\ntargets")
	w := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\ttarget\tmeasured\t")
	line := func(what string, measured, target float64, most bool, unit string) {
		verdict, sign := "met", "<="
		missed := measured > target
		if !most {
			sign, missed = ">=", measured < target
		}
		if math.IsNaN(measured) {
			verdict = "not measured"
		} else if missed {
			verdict = fmt.Sprintf("missed by %.0f%%", 100*abs(measured-target)/target)
		}
		fmt.Fprintf(w, "%s\t%s %.4g%s\t%.3g%s\t%s\n", what, sign, target, unit, measured, unit, verdict)
	}
	rows := scenarios()
	all, one, single := rows[0].name, rows[1].name, rows[2].name
	peak := func(name string) float64 { return spreadOf(r.peaks[name]).median }
	line("service CPU, all pods, against typed protobuf", r.ratio(all, 1, 1, "protobuf"), 0.30, true, "")
	line("  the same without gzip", r.ratio(all, 1, 1, "protobuf-plain"), 0.30, true, "")
	line("service CPU, all pods, against typed JSON", r.ratio(all, 1, 1, "json"), 0.12, true, "")
	line("peak memory growth, all pods, against typed protobuf", peak(ours)/peak("protobuf"), 0.10, true, "")
	line("wall time, all pods, against the raw fetch alone", r.ratio(all, 1, 0, "raw"), 1.05, true, "")
	line("  against the same fetch in pages", r.ratio(all, 1, 0, "raw-pages"), 1.05, true, "")
	line("calls/s, one namespace, 64 callers, against the proxy", r.ratio(one, 64, 2, "proxy"), 1.2, false, "")
	line("calls/s, one deployment, 64 callers, against the proxy", r.ratio(single, 64, 2, "proxy"), 0.9, false, "")
	line("added p50 of the sandbox, one object", spreadOf(r.added).median, 25, true, " us")
	line("restore, per call", spreadOf(r.restore).median, 100, true, " us")
	line("fuel, on the lens", spreadOf(r.fuelCost).median, 8, true, " %")
	line("ready with a warm compile cache", spreadOf(r.warm).median, 1, true, " s")
	line("ready from nothing", spreadOf(r.cold).median, 6, true, " s")
	line("idle memory (RSS), all modules loaded", spreadOf(r.idle).median/1e6, 150, true, " MB")
	line("  the same after compiling from nothing", spreadOf(r.idleCold).median/1e6, 150, true, " MB")
	w.Flush()
	fmt.Fprintf(r.out, "\nthe native call of the sandbox's row takes %.0f us; the guest alone takes %.2f us for a pod\n", spreadOf(r.native).median, spreadOf(r.perPod).median)
}

func abs(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}
