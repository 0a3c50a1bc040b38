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
func (w *crashRun) killAtSite(ctx context.Context, c crashSite) error {
	if before, ok := leadsTo(c.Step); ok {
		if err := w.startToDie(ctx, crashSite{c.Place, c.Stage, before, Before}, 1); err != nil {
			return err
		}
	}
	nth := int64(1)
	if _, ok := leadsTo(c.Step); !ok && c.Stage != sweeping && (c.Stage != pushing && c.Stage != watching || c.Step.IsWrite() && c.Step != steps.Assign) && c.Step != steps.ReadShards {
		nth += w.random.Int64N(4)
	}
	return w.startToDie(ctx, c, nth)
}

// startToDie starts a hub that is killed the nth time that it reaches c, and waits for that.
func (w *crashRun) startToDie(ctx context.Context, c crashSite, nth int64) error {
	w.orders.Nth = nth
	began := time.Now()
	if err := w.restartHub(ctx, c); err != nil {
		return err
	}
	patience := time.NewTimer(w.patience)
	defer patience.Stop()
	select {
	case <-w.hub.exited:
	case <-patience.C:
		w.missed = append(w.missed, c)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
	if !w.hub.wasKilled() || w.hub.last != string(c.Step)+" "+string(c.When) {
		return fmt.Errorf("%s: the hub ended without being killed: %w\n%s", c, w.hub.err, w.hub.errorOutput())
	}
	w.died = append(w.died, fmt.Sprintf("%s %s, time %d", c.Step, c.When, nth))
	w.kills[c]++
	w.waited[c] = max(w.waited[c], time.Since(began))
	return nil
}

// restartHub replaces the hub by one that is killed at c.
func (w *crashRun) restartHub(ctx context.Context, c crashSite) error {
	w.hub.killProcess() // it has not reached its step
	if w.place == embedded {
		w.domain.stopServing() // its bus has died as well
	}
	w.orders.Step, w.orders.When = c.Step, c.When
	w.orders.Ahead += lifeOfLease
	var err error
	if w.hub, err = startNode(&w.orders, w.listener); err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	if err := w.hub.awaitReady(ready); err != nil {
		select {
		case <-w.hub.exited:
			if w.hub.wasKilled() && w.hub.last != "" {
				return nil // killed at a step before it was ready
			}
		default:
		}
		return err
	}
	if w.stage.isOfObjects() {
		return nil // it has no bus
	}
	if w.place == apart {
		if w.domain.isServing() {
			return nil
		}
		return w.domain.startServing(ctx, w.engines.bus, w.engines.account)
	}
	at := strings.Fields(w.hub.first)
	if len(at) != 2 || at[0] == "none" || at[1] == "none" {
		w.hub.killProcess()
		return fmt.Errorf("the hub printed no addresses: %q\n%s", w.hub.first, w.hub.errorOutput())
	}
	return w.domain.startServing(ctx, busAt(at[0]), accountAt(at[1]))
}
