package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node/config"
)

// An objectsCommand contains the flags and the client that all commands about
// objects share.
type objectsCommand struct {
	p       *process
	url     string
	timeout time.Duration
	json    bool

	hub *hubclient.Client
}

func (p *process) objectsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "objects",
		Short: "Show the objects of stores and their history",
		Long: "Show the objects of stores, as the hub knows them from the events of the stores: which exist, and the\n" +
			"history of each. If the hub also serves other machines, this needs the operator's token.",
		Example: "  messagehub objects ls results 'run7/*.bam'\n" +
			"  messagehub objects history AQFiAWsBAQRudWxsAjAx",
		Args: checkName,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.objectsList(), p.objectsShow(), p.objectsHistory(), p.objectsLink(), p.objectsCrawl(), p.objectsPatch())
	return cmd
}

// command adds the shared flags to cmd. check validates the arguments.
func (o *objectsCommand) command(cmd *cobra.Command, check func(args []string) error, body func(ctx context.Context) error) *cobra.Command {
	cmd.Flags().StringVar(&o.url, "url", hubclient.DefaultURL, "`URL` of the hub")
	cmd.Flags().DurationVar(&o.timeout, "timeout", time.Minute, "give up after this `TIME`")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	dataFlag(cmd.Flags())
	o.p.addAccess(cmd.Flags())
	cmd.RunE = o.p.do(func(ctx context.Context, args []string) (err error) {
		if err := check(args); err != nil {
			return o.p.usage("%w", err)
		}
		if _, err := hubclient.New(o.url); err != nil {
			return o.p.usage("%w", err)
		}
		if o.hub, err = o.p.newOperator(config.Inputs{Flags: cmd.Flags()}, o.url); err != nil {
			return err
		}
		defer o.hub.Close()
		ctx, cancel := context.WithTimeout(ctx, o.timeout)
		defer cancel()
		return body(ctx)
	})
	return cmd
}

// checkLimit rejects a limit of less than 1.
func checkLimit(limit int) error {
	if limit < 1 {
		return fmt.Errorf("--limit: want at least 1, got %d", limit)
	}
	return nil
}

func (p *process) objectsList() *cobra.Command {
	o := &objectsCommand{p: p}
	var limit int
	var all, anyOrder, ignoreCase bool
	var where []string
	var params url.Values
	cmd := &cobra.Command{
		Use: "ls [BUCKET [KEY]]", Aliases: []string{"list"}, Short: "List objects",
		Long: "List the objects that exist, in the order of their keys.\n\n" +
			"BUCKET and KEY may have wildcards: * for any characters, ? for one, and a backslash before either makes it\n" +
			"literal. Quote them, or the shell replaces them. --where filters by other fields, with their names in the hub's API.",
		Example: "  messagehub objects ls results 'run7/*.bam'\n" +
			"  messagehub objects ls results --where storageClass=GLACIER --where 'attributes[sample]=L1*'",
		Args: cobra.MaximumNArgs(2),
	}
	o.command(cmd, func(args []string) (err error) {
		if params, err = objectParams(args, where); err != nil {
			return err
		}
		if all {
			params.Set("currentState", "false")
		}
		if ignoreCase {
			params.Set("caseSensitive", "false")
		}
		if anyOrder {
			params.Set("order", "any")
		}
		return checkLimit(limit)
	}, func(ctx context.Context) error {
		rows, hasMore, err := o.hub.Objects(ctx, params, limit)
		if err != nil {
			return err
		}
		return o.showRows(rows, hasMore, "there are no such objects")
	})
	addLimit(cmd, &limit)
	cmd.Flags().StringArrayVar(&where, "where", nil, "only rows with this `FIELD=VALUE`; if repeated, all have to match")
	cmd.Flags().BoolVar(&all, "all", false, "list all rows, not only the current ones")
	cmd.Flags().BoolVar(&anyOrder, "any-order", false, "list in any order, which costs less")
	cmd.Flags().BoolVar(&ignoreCase, "ignore-case", false, "ignore upper and lower case")
	return cmd
}

// reservedParams contains the query parameters that --where rejects, with the
// flag or argument that sets each of them.
var reservedParams = map[string]string{
	"bucket": "the argument BUCKET", "key": "the argument KEY", "currentState": "--all", "caseSensitive": "--ignore-case", "order": "--any-order",
	"limit": "--limit", "pageToken": "--limit",
}

// objectParams converts the arguments BUCKET and KEY, and the conditions of
// --where, to query parameters.
func objectParams(args, where []string) (url.Values, error) {
	params := url.Values{}
	for i, arg := range args {
		name := [...]string{"bucket", "key"}[i]
		if arg == "" {
			return nil, fmt.Errorf("the %s is empty; leave it out, or use '*' for any", name)
		}
		params.Set(name, arg)
	}
	for _, condition := range where {
		name, value, ok := strings.Cut(condition, "=")
		switch {
		case !ok || name == "":
			return nil, fmt.Errorf("--where: want FIELD=VALUE, got %q", condition)
		case reservedParams[name] != "":
			return nil, fmt.Errorf("--where: %s is set by %s", name, reservedParams[name])
		}
		params.Add(name, value)
	}
	return params, nil
}

// oneID returns a check that requires one argument, and stores it in id. The
// argument is the id of a row.
func oneID(id *string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return fmt.Errorf("want one ID, as messagehub objects ls shows it")
		}
		*id = args[0]
		return nil
	}
}

func (p *process) objectsShow() *cobra.Command {
	o := &objectsCommand{p: p}
	var id string
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a row of an object", Long: "Show a row of an object: an event, and what follows from it. messagehub deliveries list prints the ids.",
		Example: "  messagehub objects show AQFiAWsBAQRudWxsAjAx", Args: oneID(&id),
	}
	return o.command(cmd, func([]string) error { return nil }, func(ctx context.Context) error {
		text, err := o.hub.Object(ctx, id)
		if err != nil {
			return err
		}
		if o.json {
			return json.NewEncoder(p.out).Encode(text)
		}
		return o.showObject(text)
	})
}

func (p *process) objectsHistory() *cobra.Command {
	o := &objectsCommand{p: p}
	var id string
	var limit int
	var isPaired bool
	cmd := &cobra.Command{
		Use: "history ID", Short: "Show the history of an object",
		Long:    "Show all rows of an object, newest first. ID is the id of any of its rows.",
		Example: "  messagehub objects history AQFiAWsBAQRudWxsAjAx --paired", Args: oneID(&id),
	}
	o.command(cmd, func([]string) error {
		if isPaired && cmd.Flags().Changed("limit") {
			return fmt.Errorf("--paired shows all pairs; leave --limit out")
		}
		return checkLimit(limit)
	}, func(ctx context.Context) error {
		if isPaired {
			pairs, err := o.hub.ObjectPairs(ctx, id)
			if err != nil {
				return err
			}
			return o.showPairs(pairs)
		}
		rows, hasMore, err := o.hub.ObjectHistory(ctx, id, limit)
		if err != nil {
			return err
		}
		return o.showRows(rows, hasMore, "the object has no rows")
	})
	addLimit(cmd, &limit)
	cmd.Flags().BoolVar(&isPaired, "paired", false, "show each deletion with the creation before it")
	return cmd
}
