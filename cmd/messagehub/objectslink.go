package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
)

// linkAdvice explains each reason for which an object has no link.
var linkAdvice = map[string]string{
	"deleted":     "the object is deleted",
	"not-current": "the row is not the current one of its object; messagehub objects history shows which one is",
	"archived":    "the content is archived; restore it first",
	"too-large":   "the content has more bytes than objects.link-limit of the hub",
	"changed":     "the store has another content, of which no event has come yet; try again later, or crawl the bucket",
	"no-store":    "the store of the bucket is not among objects.stores of the hub",
	"no-links":    "the store has no links",
}

func (p *process) objectsLink() *cobra.Command {
	o := &objectsCommand{p: p}
	var id string
	var expires time.Duration
	var isAttachment bool
	cmd := &cobra.Command{
		Use: "link ID", Short: "Print a URL of the content of an object",
		Long: "Print a URL of the store with which anyone can read the content of an object, without a token, until it\n" +
			"expires. ID is that of the current row. It needs the operator's token.",
		Example: "  messagehub objects link AQFiAWsBAQRudWxsAjAx --expires 5m", Args: oneID(&id),
	}
	o.command(cmd, func([]string) error {
		if expires != 0 && (expires < time.Second || expires%time.Second != 0) {
			return fmt.Errorf("--expires: want whole seconds, such as 5m, got %s", expires)
		}
		return nil
	}, func(ctx context.Context) error {
		link, err := o.hub.ObjectLink(ctx, id, expires, isAttachment)
		switch {
		case err != nil:
			return err
		case o.json:
			return json.NewEncoder(p.out).Encode(link)
		case link.URL == nil:
			return fmt.Errorf("there is no link: %s", explainNoLink(link))
		}
		_, err = fmt.Fprintln(p.out, *link.URL)
		return err
	})
	cmd.Flags().DurationVar(&expires, "expires", 0, "`TIME` for which the URL can be used; default: the setting of the hub")
	cmd.Flags().BoolVar(&isAttachment, "attachment", false, "let browsers save the content instead of showing it")
	return cmd
}

func explainNoLink(link *hubclient.ObjectLink) string {
	if text := linkAdvice[link.Reason]; text != "" {
		return text
	}
	return strings.ReplaceAll(shorten(link.Reason, 40), "-", " ") // a newer hub may return an unknown reason
}
