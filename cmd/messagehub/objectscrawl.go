package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/terminal"
)

func (p *process) objectsCrawl() *cobra.Command {
	o := &objectsCommand{p: p}
	var bucket, prefix string
	cmd := &cobra.Command{
		Use: "crawl BUCKET", Short: "Compare the objects of a bucket with those of its store",
		Long: "Let the hub list the store of a bucket that is in objects.stores, and store the differences from what it\n" +
			"knows, and wait for the end. The crawl continues in the hub if this command ends earlier. It needs the\n" +
			"operator's token.",
		Example: "  messagehub objects crawl results --prefix run7/", Args: cobra.ExactArgs(1),
	}
	o.command(cmd, func(args []string) error {
		if bucket = args[0]; bucket == "" {
			return errors.New("the bucket is empty")
		}
		return nil
	}, func(ctx context.Context) error {
		crawl, err := o.hub.StartCrawl(ctx, bucket, prefix)
		if err != nil {
			return err
		}
		if crawl, err = o.awaitJob(ctx, "crawl", hubclient.CrawlsPath, crawl); err != nil {
			return err
		}
		return o.showCrawl(crawl)
	})
	cmd.Flags().StringVar(&prefix, "prefix", "", "only objects whose keys begin with this `TEXT`")
	return cmd
}

// showCrawl prints the result of a crawl. It fails if the crawl was not
// completed.
func (o *objectsCommand) showCrawl(c *hubclient.ObjectJob) error {
	return o.showJob("crawl", c, func() {
		fmt.Fprintf(o.p.out, "%s listed: %d created or changed, %d deleted, %d unchanged\n",
			terminal.CountOf(c.Counts.Seen, "object"), c.Counts.Created, c.Counts.Deleted, c.Counts.Unchanged)
		if c.Counts.Refused > 0 {
			fmt.Fprintf(o.p.out, "%s cannot be stored, such as one whose key is not UTF-8\n", terminal.CountOf(c.Counts.Refused, "object"))
		}
	})
}
