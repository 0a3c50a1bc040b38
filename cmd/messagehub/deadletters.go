package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// A deadLettersCommand contains the flags and the client that all commands
// about dead letters share.
type deadLettersCommand struct {
	p       *process
	url     string
	timeout time.Duration
	who     string
	why     string
	reason  string
	limit   int
	isAll   bool
	isSure  bool
	json    bool

	hub *hubclient.Client
}

func (p *process) deadLettersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "Show the dead letters of the queues of Service Bus, send them again, delete them",
		Long: "Show the dead letters of the queues of Service Bus, send them again, and delete them. A dead letter is a\n" +
			"message that the hub could not store, with the reason; messagehub help incidents says what to do about\n" +
			"each reason. Every order, and every reading of a body, is recorded in the hub with its operator and reason.\n\n" +
			"The hub's token for operators comes from " + tokenVariable + " or, for a hub that has generated one,\n" +
			"from the file admin.token in its data folder (--data).",
		Example: "  messagehub dead-letters list\n" +
			"  messagehub dead-letters list dataavailable --reason damaged\n" +
			"  messagehub dead-letters resend dataavailable --all --reason damaged --why 'the mailbox is repaired, ticket 4711'",
		Args: checkName,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.deadLettersList(), p.deadLettersShow(), p.deadLettersOrder(true), p.deadLettersOrder(false), p.deadLettersRecords())
	return cmd
}

// command returns a command. check validates its arguments before any request.
func (d *deadLettersCommand) command(use, short, long, example string, isOrder bool, check func(args []string) error, body func(ctx context.Context, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + long, Example: "  messagehub dead-letters " + example,
		Args: func(_ *cobra.Command, args []string) error { return check(args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&d.url, "url", hubclient.DefaultAdminURL, "`URL` at which the hub serves operators (its setting admin-listen)")
	flags.DurationVar(&d.timeout, "timeout", time.Minute, "give up after this `TIME`; with --all, after this time without progress")
	if isOrder {
		flags.StringVar(&d.why, "why", "", "`TEXT` with the reason, for the record (required)")
		flags.StringVar(&d.who, "who", "", "`NAME` for the record (default: your login name)")
	}
	dataFlag(flags)
	d.p.addAccess(flags)
	cmd.RunE = d.p.do(func(ctx context.Context, args []string) (err error) {
		if _, err := hubclient.New(d.url); err != nil {
			return d.p.usage("%w", err)
		}
		if isOrder {
			if err := d.checkOrder(); err != nil {
				return d.p.usage("%w", err)
			}
		}
		if d.hub, err = d.p.newOperator(config.Inputs{Flags: flags}, d.url); err != nil {
			return err
		}
		defer d.hub.Close()
		return body(ctx, args)
	})
	return cmd
}

func (d *deadLettersCommand) checkOrder() error {
	if d.who = cmp.Or(d.who, loginName()); d.who == "" {
		return errors.New("--who is missing, and your login name is not known; say who you are")
	}
	if d.why == "" {
		return errors.New("--why is missing; say why, for the record")
	}
	return nil
}

func (d *deadLettersCommand) newOrder(isResend bool) hubclient.DeadLetterAction {
	return hubclient.DeadLetterAction{Who: d.who, Why: d.why, IsResend: isResend}
}

func (p *process) deadLettersList() *cobra.Command {
	d := &deadLettersCommand{p: p}
	cmd := d.command("list [QUEUE]", "List the dead letters of a queue, or the queues",
		"Without QUEUE, the queues are listed, with the number of their dead letters. On Azure the hub cannot read\nthat number; the portal shows it.",
		"list dataavailable --reason damaged", false,
		func(args []string) error {
			switch {
			case len(args) > 1:
				return errors.New("want one QUEUE, or none for the list of queues")
			case len(args) == 0 && d.reason != "":
				return errors.New("--reason: want a QUEUE, too")
			case d.limit < 1:
				return fmt.Errorf("--limit: want at least 1, got %d", d.limit)
			}
			return nil
		},
		func(ctx context.Context, args []string) error {
			ctx, cancel := context.WithTimeout(ctx, d.timeout)
			defer cancel()
			if len(args) == 0 {
				return d.listQueues(ctx)
			}
			return d.listLetters(ctx, args[0])
		})
	cmd.Flags().StringVar(&d.reason, "reason", "", "only dead letters with this `REASON`")
	cmd.Flags().IntVar(&d.limit, "limit", 100, "show at most `NUMBER` rows")
	cmd.Flags().BoolVar(&d.json, "json", false, "print the hub's answer unchanged")
	return cmd
}

func (d *deadLettersCommand) listQueues(ctx context.Context) error {
	queues, text, err := d.hub.DeadLetterQueues(ctx)
	if err != nil {
		return err
	}
	if d.json {
		return d.p.showJSON(text)
	}
	return d.p.showDeadLetterQueues(queues)
}

func (d *deadLettersCommand) listLetters(ctx context.Context, queue string) error {
	var texts []json.RawMessage
	more := false
	err := d.hub.DeadLetters(ctx, queue, d.reason, func(page []json.RawMessage, hasMore bool) bool {
		texts = append(texts, page...)
		more = hasMore || len(texts) > d.limit
		return len(texts) < d.limit
	})
	if err != nil {
		return err
	}
	texts = texts[:min(len(texts), d.limit)]
	if d.json {
		return json.NewEncoder(d.p.out).Encode(map[string]any{"queue": queue, "deadLetters": append([]json.RawMessage{}, texts...)})
	}
	if err := d.p.showLettersOfQueue(queue, texts); err != nil {
		return err
	}
	if more {
		fmt.Fprintln(d.p.err, "messagehub: the list may be longer; --limit shows more of it, --reason one reason only")
	}
	return nil
}

// checkOneLetter requires the arguments QUEUE and NUMBER, which identify a dead
// letter.
func checkOneLetter(args []string) error {
	if len(args) != 2 {
		return errors.New("want QUEUE and NUMBER, the sequence number that list prints")
	}
	if n, err := strconv.ParseInt(args[1], 10, 64); err != nil || n < 0 {
		return fmt.Errorf("want the sequence number that list prints, got %q", args[1])
	}
	return nil
}

func (p *process) deadLettersShow() *cobra.Command {
	d := &deadLettersCommand{p: p}
	cmd := d.command("show QUEUE NUMBER", "Show a dead letter with its body",
		"The body is a payload, so the hub records who reads it and why. The queue is not changed.",
		"show dataavailable 17 --why 'ticket 4711'", true, checkOneLetter,
		func(ctx context.Context, args []string) error {
			ctx, cancel := context.WithTimeout(ctx, d.timeout)
			defer cancel()
			found, text, err := d.hub.DeadLetter(ctx, args[0], args[1], d.newOrder(false))
			if err != nil {
				return err
			}
			if d.json {
				return p.showJSON(text)
			}
			return p.showDeadLetter(found)
		})
	cmd.Flags().BoolVar(&d.json, "json", false, "print the hub's answer unchanged")
	return cmd
}

func (p *process) deadLettersRecords() *cobra.Command {
	d := &deadLettersCommand{p: p}
	cmd := d.command("records QUEUE", "Show what operators have done to the dead letters of a queue", "Newest records first.",
		"records dataavailable", false,
		func(args []string) error {
			if len(args) != 1 {
				return errors.New("want one QUEUE")
			}
			return nil
		},
		func(ctx context.Context, args []string) error {
			ctx, cancel := context.WithTimeout(ctx, d.timeout)
			defer cancel()
			records, text, err := d.hub.DeadLetterRecords(ctx, args[0])
			if err != nil {
				return err
			}
			if d.json {
				return p.showJSON(text)
			}
			return p.showDeadLetterRecords(records)
		})
	cmd.Flags().BoolVar(&d.json, "json", false, "print the hub's answer unchanged")
	return cmd
}

// deadLettersOrder returns the command resend if isResend is true; otherwise it
// returns the command delete.
func (p *process) deadLettersOrder(isResend bool) *cobra.Command {
	d := &deadLettersCommand{p: p}
	name, verb, long := "delete", "Delete dead letters", "Their messages are lost."
	if isResend {
		name, verb = "resend", "Send dead letters again"
		long = "A copy of each is sent to its queue, and the dead letter is deleted. If the cause is not repaired, the\nmessage becomes a dead letter with another number again."
	}
	cmd := d.command(name+" QUEUE [NUMBER]", verb,
		long+"\n\nGive the NUMBER of one dead letter, or --all and --reason for all dead letters with that reason. With --all, the command asks for confirmation.",
		name+" dataavailable 17 --why 'ticket 4711'", true,
		func(args []string) error {
			switch {
			case !d.isAll && d.reason != "":
				return errors.New("--reason: it needs --all; give both, or a NUMBER alone")
			case !d.isAll && d.isSure:
				return errors.New("--yes: it confirms --all; a NUMBER needs no confirmation")
			case !d.isAll:
				return checkOneLetter(args)
			case len(args) != 1:
				return errors.New("want QUEUE alone with --all")
			case d.reason == "":
				return errors.New("--reason is missing; say which dead letters, by the reason that list prints")
			}
			return nil
		},
		func(ctx context.Context, args []string) error {
			done := "deleted"
			if isResend {
				done = "sent again"
			}
			if d.isAll {
				return d.orderAll(ctx, args[0], done, d.newOrder(isResend))
			}
			ctx, cancel := context.WithTimeout(ctx, d.timeout)
			defer cancel()
			if err := d.hub.ActOnDeadLetter(ctx, args[0], args[1], d.newOrder(isResend)); err != nil {
				return err
			}
			return d.printDone(1, "%s dead letter %s of %s\n", done, args[1], terminal.Printable(args[0]))
		})
	cmd.Flags().BoolVar(&d.isAll, "all", false, "all dead letters that have the --reason when the command starts")
	cmd.Flags().StringVar(&d.reason, "reason", "", "with --all: the `REASON` of the dead letters")
	cmd.Flags().BoolVar(&d.isSure, "yes", false, "with --all: do not ask for confirmation")
	cmd.Flags().BoolVar(&d.json, "json", false, `print the result as JSON, {"count":1}`)
	return cmd
}

// printDone prints the result of an order that concerned n dead letters.
func (d *deadLettersCommand) printDone(n int, format string, args ...any) error {
	if d.json {
		return json.NewEncoder(d.p.out).Encode(map[string]int{"count": n})
	}
	_, err := fmt.Fprintf(d.p.out, format, args...)
	return err
}

// orderAll counts the dead letters with the reason, and asks for confirmation.
// The order then applies only to the counted dead letters.
func (d *deadLettersCommand) orderAll(ctx context.Context, queue, done string, by hubclient.DeadLetterAction) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("the hub has not answered within --timeout, %s: %w", d.timeout, err)
		}
	}()
	late := time.AfterFunc(d.timeout, cancel)
	defer late.Stop()
	count, through := int64(0), ""
	err = d.hub.DeadLetters(ctx, queue, d.reason, func(page []json.RawMessage, _ bool) bool {
		late.Reset(d.timeout)
		count += int64(len(page))
		if len(page) > 0 {
			var last hubclient.DeadLetter
			_ = json.Unmarshal(page[len(page)-1], &last) // without a sequence number, through is "", which the hub rejects
			through = last.SequenceNumber
		}
		return true
	})
	if err != nil {
		return err
	}
	if count == 0 {
		return d.printDone(0, "%s has no dead letters with the reason %s\n", terminal.Printable(queue), terminal.Printable(d.reason))
	}
	late.Stop() // the timeout does not apply while a person answers
	what := fmt.Sprintf("%s of %s with the reason %s", terminal.CountOf(count, "dead letter"), terminal.Printable(queue), terminal.Printable(d.reason))
	if !d.isSure && !d.askConfirmation(what, done) {
		return fmt.Errorf("nothing was done to %s; answer yes, or use --yes", what)
	}
	late.Reset(d.timeout)
	sum, err := d.hub.ActOnDeadLetters(ctx, queue, d.reason, through, by, func(int) { late.Reset(d.timeout) })
	if err != nil {
		return fmt.Errorf("%s of %s; then: %w", terminal.CountOf(int64(sum), "dead letter"), done, err)
	}
	return d.printDone(sum, "%s %s of %s\n", done, terminal.CountOf(int64(sum), "dead letter"), terminal.Printable(queue))
}

// askConfirmation asks a person to confirm an order. It returns true if the
// answer was yes.
func (d *deadLettersCommand) askConfirmation(what, done string) bool {
	fmt.Fprintf(d.p.err, "%s will be %s. Type yes to continue: ", what, done)
	answer, err := bufio.NewReader(io.LimitReader(d.p.in, 1<<10)).ReadString('\n')
	if err != nil {
		fmt.Fprintln(d.p.err)
	}
	return strings.EqualFold(strings.TrimSpace(answer), "yes")
}
