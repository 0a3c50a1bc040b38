//go:build unix

package crashsites

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/messagehub/messagehub/bench/simulate/steps"
)

// killAtSite kills the hub at c. If the hub reaches c only after a kill at a different step, killAtSite first kills the
// hub at that step.
func (run *crashRun) killAtSite(ctx context.Context, c crashSite) error {
	if before, ok := leadsTo(c.Step); ok {
		if err := run.runUntilKilled(ctx, crashSite{c.Place, c.Stage, before, Before}, 1); err != nil {
			return err
		}
	}
	nth := int64(1)
	if _, ok := leadsTo(c.Step); !ok && c.Stage != sweeping && (c.Stage != pushing && c.Stage != watching || c.Step.IsWrite() && c.Step != steps.Assign) && c.Step != steps.ReadShards {
		nth += run.random.Int64N(4)
	}
	return run.runUntilKilled(ctx, c, nth)
}

// runUntilKilled starts a hub that kills itself the nth time that it reaches c, and waits for the kill.
func (run *crashRun) runUntilKilled(ctx context.Context, c crashSite, nth int64) error {
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
	run.killed = append(run.killed, fmt.Sprintf("%s %s, time %d", c.Step, c.When, nth))
	run.kills[c]++
	run.waited[c] = max(run.waited[c], time.Since(began))
	return nil
}

// restartHub kills the hub, and starts a new hub that kills itself at c.
func (run *crashRun) restartHub(ctx context.Context, c crashSite) error {
	run.hub.killProcess() // the hub may not have reached the crash site at which it kills itself
	if run.place == embedded {
		run.domain.stopServing() // the embedded bus has died with the hub
	}
	run.orders.Step, run.orders.When = c.Step, c.When
	run.orders.Ahead += clockLead
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
				return nil // the kill switch acted before the hub was ready
			}
		default:
		}
		return err
	}
	if run.stage.usesObjectNode() {
		return nil // a node that stores objects has no bus
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
