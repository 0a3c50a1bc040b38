package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A proofCampaign runs the seeds of a campaign in pieces, and saves the state.
type proofCampaign struct {
	state     *campaignState
	statePath string
	savedPath string
	commit    string

	run      func(context.Context, seedPiece) (totals, error)
	workers  int
	failures int       // number of failures in this run after which the campaign stops
	until    time.Time // time after which no piece starts; zero means no limit

	now      func() time.Time
	tick     <-chan time.Time // receives a value when progress is due
	progress *progressLine

	left          uint64    // seeds that were not started
	failed        []failure // failures of this run
	isInterrupted bool      // true after this run was interrupted
}

// planPieces returns the pieces to run: the saved seeds, the seeds to run twice, and the seeds that were not run
// before.
func (c *proofCampaign) planPieces(seeds []savedSeed, f flags) []seedPiece {
	var all []seedPiece
	for _, one := range seeds {
		all = append(all, seedPiece{span{one.seed, 1}, saved, one.part})
	}
	for _, s := range c.state.Twice.missingFrom(span{f.from, f.twice}, f.piece) {
		all = append(all, seedPiece{s, twice, ""})
	}
	for _, s := range c.state.Seeds.missingFrom(span{f.from, f.seeds}, f.piece) {
		all = append(all, seedPiece{s, fresh, ""})
	}
	return all
}

type pieceResult struct {
	seedPiece
	totals
	err error
}

// runPieces runs all pieces. Before it returns, it waits for all processes to end and saves the state. A failed seed
// is not an error of runPieces; see verdictError.
func (c *proofCampaign) runPieces(ctx context.Context, pieces []seedPiece) error {
	work, results := make(chan seedPiece), make(chan pieceResult)
	var workers sync.WaitGroup
	for range c.workers {
		workers.Go(func() {
			for p := range work {
				t, err := c.run(ctx, p)
				results <- pieceResult{p, t, err}
			}
		})
	}
	began, before := c.now(), c.state.Wall
	var trouble error
	running, done := 0, ctx.Done()
	for {
		var next chan seedPiece
		var first seedPiece
		switch {
		case len(pieces) == 0:
		case trouble != nil || ctx.Err() != nil || len(c.failed) >= c.failures || !c.until.IsZero() && c.now().After(c.until):
			pieces, c.isInterrupted = nil, true
		default:
			next, first = work, pieces[0]
		}
		if running == 0 && next == nil {
			break
		}
		select {
		case next <- first:
			pieces = pieces[1:]
			running++
		case r := <-results:
			running--
			var again []seedPiece
			again, err := c.takeResult(r)
			pieces = append(again, pieces...)
			c.state.Wall = before + c.now().Sub(began).Seconds()
			trouble = errors.Join(trouble, err, c.state.saveTo(c.statePath))
		case <-c.tick:
			c.showProgress(pieces)
		case <-done:
			done = nil
		}
	}
	close(work)
	workers.Wait()
	c.showProgress(pieces)
	c.progress.endLine()
	return trouble
}

func (c *proofCampaign) showProgress(pieces []seedPiece) {
	c.left = 0
	for _, p := range pieces {
		c.left += p.Seeds
	}
	c.progress.showIfDue(c.now(), c.state, len(c.failed), c.left)
}

// takeResult records the result of a piece. If the seeds of the piece must be run again, takeResult returns the pieces
// to run.
func (c *proofCampaign) takeResult(r pieceResult) ([]seedPiece, error) {
	switch {
	case errors.Is(r.err, context.Canceled):
		c.isInterrupted = true
		return nil, nil
	case errors.Is(r.err, errSilent) && r.Seeds > 1:
		var each []seedPiece
		for seed := r.From; seed < r.endSeed(); seed++ {
			each = append(each, seedPiece{span{seed, 1}, r.kind, r.part})
		}
		return each, nil
	case errors.Is(r.err, errSilent):
		r.Failed = []uint64{r.From}
	case r.err != nil:
		return nil, r.err
	}
	c.state.addTotals(r.seedPiece, r.totals)
	failed := slices.Concat(r.Failed, r.Differing)
	slices.Sort(failed)
	if r.kind == saved && len(failed) == 0 {
		c.state.markRepaired(r.From, c.commit)
	}
	for _, seed := range slices.Compact(failed) {
		what := r.describeSeed(seed)
		if slices.Contains(r.Differing, seed) {
			what = "two runs differ: " + what
		}
		f := failure{Seed: seed, Commit: c.commit, What: what}
		c.failed = append(c.failed, f)
		c.state.addFailure(f)
		c.progress.printLine(fmt.Sprintf("seed %d fails: %s", seed, what))
		if err := saveSeed(c.savedPath, f); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// verdictError returns an error unless the campaign met all requirements of f.
func (c *proofCampaign) verdictError(f flags) error {
	var all []error
	for _, bad := range c.state.Failed {
		if bad.Commit == c.commit {
			all = append(all, fmt.Errorf("seed %d fails: %s", bad.Seed, bad.What))
		}
	}
	if c.isInterrupted {
		return errors.Join(append(all, errors.New("not finished: run the same command to resume"))...)
	}
	if f.rare > 0 && len(c.state.Coverage) == 0 {
		all = append(all, errors.New("the simulation reports no rare states"))
	}
	for _, name := range c.state.rarestStates() {
		if n := c.state.Coverage[name]; n < int64(f.rare) {
			all = append(all, fmt.Errorf("reached %d times, want %d: %s", n, f.rare, name))
		}
	}
	return errors.Join(all...)
}
