//go:debug randseednop=0

package simulate

import (
	"flag"
	"fmt"
	"testing"
	"time"
)

var (
	from  = flag.Uint64("simulate.from", 0, "the first seed")
	seeds = flag.Uint64("simulate.seeds", 50, "how many seeds")
	show  = flag.Bool("simulate.trace", false, "print the trace")
	twice = flag.Bool("simulate.twice", false, "run each seed twice and compare the traces")
)

func TestSeeds(t *testing.T) {
	began, steps, faulted := time.Now(), 0, 0
	for seed := *from; seed < *from+*seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := Simulate(t, Options{Seed: seed, Trace: *show})
			steps, faulted = steps+r.Steps, faulted+r.Faulted
			for _, line := range r.Trace {
				fmt.Println(line)
			}
			if r.Err != nil {
				t.Errorf("seed %d: %v", seed, r.Err)
			}
		})
	}
	fmt.Println(steps, "steps", faulted, "faulted", float64(steps)/time.Since(began).Seconds(), "steps/s")
}
