//go:build unix

package crashsites

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/steps"
)

// killAtSite kills the hub at c. If c is reached only after another kill, that kill comes first.
func (run *crashRun) killAtSite(ctx context.Context, c crashSite) error {
	if before, ok := leadsTo(c.Step); ok {
		if err := run.startToDie(ctx, crashSite{c.Place, c.Stage, before, Before}, 1); err != nil {
			return err
		}
	}
	nth := int64(1)
	if _, ok := leadsTo(c.Step); !ok && c.Stage != sweeping && (c.Stage != pushing && c.Stage != watching || c.Step.IsWrite() && c.Step != steps.Assign) && c.Step != steps.ReadShards {
		nth += run.random.Int64N(4)
	}
	return run.startToDie(ctx, c, nth)
}

// startToDie starts a hub that is killed the nth time that it reaches c, and waits for the
// kill.
func (run *crashRun) startToDie(ctx context.Context, c crashSite, nth int64) error {
	run.orders.Nth = nth
	began := time.Now()
	if err := run.restartHub(ctx, c); err != nil {
		return err
	}
	patience := time.NewTimer(run.patience)
	defer patience.Stop()
	select {
	case <-run.hub.exited:
	case <-patience.C:
		run.missed = append(run.missed, c)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	if !run.hub.wasKilled() || run.hub.last != string(c.Step)+" "+string(c.When) {
		return fmt.Errorf("%s: the hub ended without being killed: %w\n%s", c, run.hub.err, run.hub.errorOutput())
	}
	run.died = append(run.died, fmt.Sprintf("%s %s, time %d", c.Step, c.When, nth))
	run.kills[c]++
	run.waited[c] = max(run.waited[c], time.Since(began))
	return nil
}

// restartHub replaces the hub by one that is killed at c.
func (run *crashRun) restartHub(ctx context.Context, c crashSite) error {
	run.hub.killProcess() // it has not reached its step
	if run.place == embedded {
		run.domain.stopServing() // its bus has died as well
	}
	run.orders.Step, run.orders.When = c.Step, c.When
	run.orders.Ahead += lifeOfLease
	var err error
	if run.hub, err = startNode(&run.orders, run.listener); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, run.patience)
	defer cancel()
	if err := run.hub.awaitReady(ready); err != nil {
		select {
		case <-run.hub.exited:
			if run.hub.wasKilled() && run.hub.last != "" {
				return nil // killed at a step before it was ready
			}
		default:
		}
		return err
	}
	if run.stage.isOfObjects() {
		return nil // it has no bus
	}
	if run.place == apart {
		if run.domain.isServing() {
			return nil
		}
		return run.domain.startServing(ctx, run.engines.bus, run.engines.account)
	}
	at := strings.Fields(run.hub.first)
	if len(at) != 2 || at[0] == "none" || at[1] == "none" {
		run.hub.killProcess()
		return fmt.Errorf("the hub printed no addresses: %q\n%s", run.hub.first, run.hub.errorOutput())
	}
	return run.domain.startServing(ctx, busAt(at[0]), accountAt(at[1]))
}
