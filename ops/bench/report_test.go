package main

import "testing"

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   spread
		around float64
	}{
		{nil, spread{}, 0},
		{[]float64{4}, spread{4, 4, 4}, 0},
		{[]float64{3, 1, 2}, spread{2, 1, 3}, 50},
		{[]float64{4, 1, 3, 2}, spread{2.5, 1, 4}, 60},
	} {
		if got := spreadOf(c.values); got != c.want || got.around() != c.around {
			t.Errorf("spreadOf(%v) = %v around %v, want %v around %v", c.values, got, got.around(), c.want, c.around)
		}
	}
}
