package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/domain"
)

func (p *process) deliveriesReplay() *cobra.Command {
	d := &deliveriesCommand{p: p}
	var id domain.DeliveryID
	return d.command("replay", "ID", "Repeat a delivery",
		"A dead letter is attempted again. Any other delivery that has ended is repeated as long as its event is stored.",
		"0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41.0.17",
		func(text string) (err error) {
			if d.actor == "" {
				return errors.New("--actor is missing; say who you are")
			}
			id, err = domain.ParseDeliveryID(text)
			return err
		},
		func(ctx context.Context) error {
			if err := d.hub.ReplayDelivery(ctx, d.actor, id); err != nil {
				return err
			}
			_, err := fmt.Fprintf(p.out, "%s is repeated\n", id)
			return err
		})
}

func (p *process) subscriptionsReplay() *cobra.Command {
	s := &subscriptionsCommand{p: p}
	var draft hubclient.ReplayDraft
	var from, to, show, stop string
	cmd := s.command("replay ID", "Repeat the deliveries of a range of time",
		"For the events that were published in the range, the deliveries that have ended are repeated. A subscription has\n"+
			"one replay at a time.",
		func(ctx context.Context, id domain.SubscriptionID) (err error) {
			switch {
			case stop != "":
				if err := s.hub.StopReplay(ctx, s.a.actor, id, stop); err != nil {
					return err
				}
				_, err = fmt.Fprintf(p.out, "replay %s stops\n", stop)
				return err
			case show != "":
				r, err := s.hub.Replay(ctx, s.a.actor, id, show)
				return s.showReplay(r, err)
			}
			if draft.From, err = parseTime("from", from, time.Now()); err != nil {
				return p.usage("%w", err)
			}
			if draft.To, err = parseTime("to", to, time.Now()); err != nil {
				return p.usage("%w", err)
			}
			r, err := s.hub.StartReplay(ctx, s.a.actor, id, &draft)
			return s.showReplay(r, err)
		})
	f := cmd.Flags()
	f.StringVar(&from, "from", "", "first `TIME` of publication, as 2030-01-31T12:00:00Z, or as a duration before now, such as 24h")
	f.StringVar(&to, "to", "0s", "exclusive end of the range, a `TIME` as in --from")
	f.StringVar(&draft.Filter, "filter", "", "only events that also match this JMESPath `EXPRESSION`")
	f.StringVar(&draft.Of, "of", "dead", "`SET` of deliveries: dead (dead letters), or all (all deliveries that have ended)")
	f.IntVar(&draft.Rate, "rate", domain.DefaultReplayRate, "deliveries per second, `N` up to 1000")
	f.BoolVar(&draft.DryRun, "dry-run", false, "count the deliveries, and make none")
	f.StringVar(&show, "show", "", "show the progress of the `REPLAY` with this id")
	f.StringVar(&stop, "stop", "", "stop the `REPLAY` with this id")
	s.jsonFlag(f)
	return cmd
}

// parseTime parses a time, or a duration, which means that long before now.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return now.Add(-d).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("--%s: want a time such as 2030-01-31T12:00:00Z or a duration such as 24h, got %q", flag, text)
	}
	return t, nil
}

func (s *subscriptionsCommand) showReplay(r *hubclient.Replay, err error) error {
	switch {
	case err != nil:
		return err
	case s.json:
		_, err = fmt.Fprintln(s.p.out, strings.TrimSpace(string(r.Text)))
	case r.ID == "" && r.Complete:
		_, err = fmt.Fprintf(s.p.out, "deliveries that would be repeated: %d\n", r.Matched)
	case r.ID == "":
		_, err = fmt.Fprintf(s.p.out, "deliveries that would be repeated: at least %d; the count stopped after %d events\n", r.Matched, r.Seen)
	default:
		_, err = fmt.Fprintf(s.p.out, "replay %s is %s: %d repeated, %d outstanding and skipped, up to %d events remaining\n", r.ID, r.State, r.Matched, r.Skipped, r.Remaining)
	}
	return err
}
