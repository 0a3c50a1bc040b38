package bench

import (
	"context"
	"fmt"

	"github.com/messagehub/messagehub/bench/account"
	"github.com/messagehub/messagehub/bench/figure"
	"github.com/messagehub/messagehub/bench/limit"
	"github.com/messagehub/messagehub/domain"
)

// The worst that a Peek is asked for: a full bundle of the smallest events.
const worst = domain.MaxBundleWeight

// perContainer is what each container of a layout is given, in request units a second:
// six physical partitions, for the six drawers that a bundle may come from.
const perContainer = 60_000

// worstPeek opens a bundle of 51,200 events of one cabinet that lie in six drawers,
// with each layout in turn, as often as the quick run or the whole one wants.
func worstPeek(ctx context.Context, r *run) error {
	a, err := r.account(ctx)
	if err != nil {
		return err
	}
	defer a.Close() //nolint:errcheck // it is in memory, and was only read
	for _, l := range sideBySide {
		if err := l.provision(ctx, a, perContainer); err != nil {
			return fmt.Errorf("provision %s: %w", l.name, err)
		}
		defer a.Drop(context.WithoutCancel(ctx), l.name) //nolint:errcheck // on an account of its own
	}
	src := source{seed: r.Seed}
	rounds := pick(r, 5, 1)
	peeks := make(map[string][]cost)
	for round := range rounds {
		actor := src.actor()
		events := src.events(int(worst), actor, 1)
		for i, l := range sideBySide {
			r.progress((float64(round)+float64(i)/float64(len(sideBySide)))/float64(rounds), "round %d of %d: %s", round+1, rounds, l.name)
			if err := l.fill(ctx, a, actor, events); err != nil {
				return err
			}
			took, err := l.peekOnce(ctx, a, actor, src.id(), len(events))
			if err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			peeks[l.name] = append(peeks[l.name], took)
		}
		took, err := limitPeek(ctx, a, events[0].Cabinet())
		if err != nil {
			return fmt.Errorf("limit: %w", err)
		}
		peeks["limit"] = append(peeks["limit"], took)
	}
	r.compare(peeks)
	return nil
}

// compare tells what the same cost with each layout, and by how much the hub is
// better than each of the others.
func (r *run) compare(costs map[string][]cost) {
	for _, layout := range []string{"limit", "hub", "original", "single"} {
		if found := costs[layout]; found != nil {
			r.figure(layout, "time", median(found, seconds), "s", nil)
			r.figure(layout, "request units", median(found, units), "RU", nil)
			r.figure(layout, "requests", median(found, requests), "requests", nil)
		}
	}
	ours := costs["hub"]
	r.figure("hub", "time, of limit", median(ours, seconds)/median(costs["limit"], seconds), "times", figure.AtMost(1.25))
	for _, layout := range []string{"original", "single"} {
		if found := costs[layout]; found != nil {
			r.figure(layout, "time, of hub", median(found, seconds)/median(ours, seconds), "times", figure.AtLeast(5))
			r.figure(layout, "request units, of hub", median(found, units)/median(ours, units), "times", figure.AtLeast(20))
		}
	}
}

// peekOnce peeks as a process that has just begun, with its connections open.
func (l *layout) peekOnce(ctx context.Context, a *account.Account, actor domain.ActorID, id domain.BundleID, want int) (cost, error) {
	line := a.Line()
	s, err := l.open(ctx, a, line)
	if err != nil {
		return cost{}, err
	}
	defer s.close()
	if _, err := s.Watermark(ctx, actor); err != nil { // for the client to find the account
		return cost{}, err
	}
	return measure(line, func() error {
		bundle, err := s.peek(ctx, actor, id)
		if err == nil && bundle.Count != want {
			err = fmt.Errorf("the bundle has %d events, want %d", bundle.Count, want)
		}
		return err
	})
}

// limitPeek makes the least requests for what the hub has just peeked.
func limitPeek(ctx context.Context, a *account.Account, cabinet domain.CabinetKey) (cost, error) {
	stored, err := readStored(ctx, a, cabinet)
	if err != nil {
		return cost{}, err
	}
	line := a.Line()
	l, stop, err := openLimit(a, line)
	if err != nil {
		return cost{}, err
	}
	defer stop()
	if _, err := l.Read(ctx, cabinet); err != nil { // for the client to find the account
		return cost{}, err
	}
	return measure(line, func() error { return l.Peek(ctx, stored) })
}

// openLimit returns a limit over l to the database of the hub.
func openLimit(a *account.Account, l *account.Line) (*limit.Limit, func(), error) {
	client, err := a.Client(l)
	if err != nil {
		return nil, nil, err
	}
	bare, err := limit.New(client, hub.name)
	return bare, client.Close, err
}

// readStored reads past the physics what the hub has stored for a cabinet.
func readStored(ctx context.Context, a *account.Account, cabinet domain.CabinetKey) (*limit.Stored, error) {
	l, stop, err := openLimit(a, a.Unmetered())
	if err != nil {
		return nil, err
	}
	defer stop()
	return l.Read(ctx, cabinet)
}
