package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// fakeSimulation is an environment variable. If it is set, this test binary acts as the simulation.
const fakeSimulation = "PROVE_FAKE_SIMULATION"

// A fake lists seeds and how they end in the fake simulation.
type fake struct {
	Fails, Dies, Differs []uint64
	Steps                int64
}

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(fakeSimulation); ok {
		os.Exit(runFake(text))
	}
	os.Exit(m.Run())
}

// runFake runs seeds as the test binary of the simulation does, and returns the exit code.
func runFake(text string) int {
	var f fake
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		panic(err)
	}
	var s span
	out, again := "", false
	for _, arg := range os.Args[1:] {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "-simulate.from":
			_, _ = fmt.Sscan(value, &s.From)
		case "-simulate.seeds":
			_, _ = fmt.Sscan(value, &s.Seeds)
		case "-simulate.out":
			out = value
		case "-simulate.twice":
			again = true
		}
	}
	t := totals{Coverage: map[string]int64{"own 409": 0, "own 412": 0}}
	for seed := s.From; seed < s.endSeed(); seed++ {
		if slices.Contains(f.Dies, seed) {
			fmt.Println("panic: all is lost")
			return 2
		}
		if slices.Contains(f.Fails, seed) {
			fmt.Printf("    simulate_test.go:30: seed %d: an event was lost\n", seed)
			t.Failed = append(t.Failed, seed)
		}
		if again && slices.Contains(f.Differs, seed) {
			fmt.Printf("    simulate_test.go:40: seed %d: step 3\n", seed)
			t.Differing = append(t.Differing, seed)
		}
		t.Steps += f.Steps
		t.Faulted += f.Steps / 10
		t.Histories++
		t.Seconds += 0.5
		t.Coverage["own 409"] += 2
	}
	line, err := json.Marshal(t)
	if err == nil {
		err = os.WriteFile(out, line, 0o600)
	}
	if err != nil {
		panic(err)
	}
	if len(t.Failed)+len(t.Differing) > 0 {
		return 1
	}
	return 0
}
