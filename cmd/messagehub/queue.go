package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/domain"
)

func (p *process) queueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "List the queues of actors, show one, and repair it when it is stuck",
		Long: "List the queues of all actors, show one as it is stored, and repair it when it is stuck. Every order is\n" +
			"recorded in the hub with its operator and reason.\n\n" +
			"The commands, except waiting, need the hub's token for operators. It comes from " + tokenVariable + " or, for a hub\n" +
			"that has generated one, from the file admin.token in its data folder (--data).",
		Example: "  messagehub queue list --state open\n" +
			"  messagehub queue show 5790001330552\n" +
			"  messagehub queue skip 5790001330552 0b9f4c5e-7a52-4d57-9d0c-3f1e6b8a2c41 --why 'ticket 4711'",
		Args: checkName,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	add := func(use, short, long string, order bool, body func(*queueCommand) func(context.Context, []string) error) {
		q := &queueCommand{p: p}
		sub := q.command(use, short, order, body(q))
		sub.Long = short + ".\n\n" + long
		cmd.AddCommand(sub)
	}
	cmd.AddCommand(p.queueList(), p.queueWaiting())
	add("show ACTOR", "Show the stored state of a queue",
		"Its groups with their open bundles, its cabinets, and of each cabinet the drawers with waiting events.\n\n"+
			"Without --json, the exit status is 3 if nothing was ever stored for the actor.",
		false, func(q *queueCommand) func(context.Context, []string) error { return q.show })
	add("records ACTOR", "Show what operators have done to a queue",
		"Newest records first.",
		false, func(q *queueCommand) func(context.Context, []string) error { return q.records })
	add("release ACTOR BUNDLE", "Withdraw an open bundle",
		"Its events wait at the front again; the next peek opens another bundle, with another id.\nAn actor that has already stored the bundle receives its events a second time.",
		true, func(q *queueCommand) func(context.Context, []string) error {
			return q.bundleOrder("release", "released")
		})
	add("skip ACTOR BUNDLE", "Close an open bundle that its actor has not confirmed",
		"Its events are not delivered again, unless the bundle is replayed.",
		true, func(q *queueCommand) func(context.Context, []string) error { return q.bundleOrder("skip", "skipped") })
	add("replay ACTOR GROUP", "Reopen the bundle that was closed last",
		"The next peek of the group returns the bundle unchanged. After a release, another replay reopens the bundle\nbefore it, as long as bundles are retained.",
		true, func(q *queueCommand) func(context.Context, []string) error { return q.replay })
	add("abandon ACTOR ORIGIN CONTENTTYPE", "Skip events that the store has lost",
		"Skips the events at the front of a cabinet that cannot be read, up to the next one that can. They are\nlisted here and in the record. Without this order, the cabinet is blocked; other cabinets are not affected. Restore\nthe lost page first if there is a copy of it; otherwise ask the senders to send the events again.",
		true, func(q *queueCommand) func(context.Context, []string) error { return q.abandon })
	add("freeze ACTOR", "Suspend deliveries to an actor until the queue is thawed",
		"Peek and dequeue of the actor then fail with 503. Events that are sent to it are stored.",
		true, func(q *queueCommand) func(context.Context, []string) error { return q.plainOrder("freeze", "frozen") })
	add("thaw ACTOR", "End a freeze",
		"The actor may peek and dequeue again.",
		true, func(q *queueCommand) func(context.Context, []string) error { return q.plainOrder("thaw", "thawed") })
	return cmd
}

func (q *queueCommand) plainOrder(what, done string) func(context.Context, []string) error {
	return func(ctx context.Context, _ []string) error {
		resp, err := q.order(ctx, what, nil)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		_, err = fmt.Fprintf(q.p.out, "%s %s\n", done, q.actor)
		return err
	}
}

func (q *queueCommand) bundleOrder(what, done string) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) error {
		id, err := domain.ParseBundleID(args[0])
		if err != nil {
			return q.p.usage("%w", err)
		}
		resp, err := q.order(ctx, what, map[string]string{"bundleId": id.String()})
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		_, err = fmt.Fprintf(q.p.out, "%s %s\n", done, id)
		return err
	}
}

func (q *queueCommand) replay(ctx context.Context, args []string) error {
	group, err := domain.ParseGroup(args[0])
	if err != nil {
		return q.p.usage("%w", err)
	}
	resp, err := q.order(ctx, "replay", map[string]string{"group": group.String()})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var b storedBundle
	if err := json.NewDecoder(resp.Body).Decode(&b); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	_, err = fmt.Fprintf(q.p.out, "opened %s again, with %d events\n", b.BundleID, b.Events)
	return err
}

func (q *queueCommand) abandon(ctx context.Context, args []string) error {
	resp, err := q.order(ctx, "abandon", map[string]string{"origin": args[0], "contentType": args[1]})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var l storedLoss
	if err := json.NewDecoder(resp.Body).Decode(&l); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	_, err = fmt.Fprintf(q.p.out, "abandoned %s\n", &l)
	return err
}

func (q *queueCommand) show(ctx context.Context, _ []string) error {
	isUnknown := false
	err := q.get(ctx, "", func(text []byte) error {
		var s storedQueue
		if err := json.Unmarshal(text, &s); err != nil {
			return err
		}
		if isUnknown = s.isUnknown(); isUnknown {
			_, err := fmt.Fprintf(q.p.out, "nothing was ever stored for actor %s; compare the id with those of messagehub queue list\n", s.Recipient)
			return err
		}
		return q.p.showQueue(&s)
	})
	if err == nil && isUnknown {
		return exitError(exitNoData)
	}
	return err
}

func (q *queueCommand) records(ctx context.Context, _ []string) error {
	return q.get(ctx, "/records", func(text []byte) error {
		var r storedRecords
		if err := json.Unmarshal(text, &r); err != nil {
			return err
		}
		return q.p.showRecords(&r)
	})
}

// get sends a GET, and prints the response with show or, with --json,
// unchanged.
func (q *queueCommand) get(ctx context.Context, path string, show func(text []byte) error) error {
	const most = 256 << 20
	resp, err := q.hub.Do(ctx, http.MethodGet, q.path(path), "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return q.hub.Unreachable(err)
	}
	if q.json {
		_, err = q.p.out.Write(text)
		return err
	}
	if err := show(text); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	return nil
}

// mustJSON encodes a value that can always be encoded.
func mustJSON(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}
