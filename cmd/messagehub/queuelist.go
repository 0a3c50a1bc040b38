package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/survey"
)

// A queueList contains the flags of messagehub queue list.
type queueList struct {
	p       *process
	url     string
	timeout time.Duration
	state   string
	sort    string
	limit   int
	json    bool
}

func (p *process) queueList() *cobra.Command {
	l := &queueList{p: p}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the queues of all actors",
		Long: "List the queues of all actors as of the last survey, the queue with the oldest waiting event first. A\n" +
			"node of the hub surveys them continuously; the list shows its age. `queue show` shows a queue as it\n" +
			"is stored now.",
		Example: "  messagehub queue list --state failing\n  messagehub queue list --sort events --limit 20",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&l.url, "url", hubclient.DefaultAdminURL, "`URL` at which the hub serves operators (its setting admin-listen)")
	cmd.Flags().StringVar(&l.state, "state", "", "only queues in this `STATE`: empty, waiting, open, failing, frozen or damaged")
	cmd.Flags().StringVar(&l.sort, "sort", string(survey.ByAge), "`ORDER` of the list: age of the oldest event, or events that wait")
	cmd.Flags().IntVar(&l.limit, "limit", survey.DefaultPage, "show at most `NUMBER` rows")
	cmd.Flags().DurationVar(&l.timeout, "timeout", time.Minute, "give up after this `TIME`")
	cmd.Flags().BoolVar(&l.json, "json", false, "print the hub's answer unchanged")
	dataFlag(cmd.Flags())
	p.addAccess(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, _ []string) error {
		if err := l.check(); err != nil {
			return p.usage("%w", err)
		}
		hub, err := p.newOperator(config.Inputs{Flags: cmd.Flags()}, l.url)
		if err != nil {
			return err
		}
		defer hub.Close()
		ctx, cancel := context.WithTimeout(ctx, l.timeout)
		defer cancel()
		found, err := l.fetch(ctx, hub)
		if err != nil {
			return err
		}
		if l.json {
			return json.NewEncoder(p.out).Encode(found)
		}
		return l.show(found)
	})
	return cmd
}

func (l *queueList) check() error {
	if _, err := hubclient.New(l.url); err != nil {
		return err
	}
	if l.limit < 1 {
		return fmt.Errorf("--limit: want at least 1, got %d", l.limit)
	}
	if l.state != "" && !slices.Contains(domain.MailboxStates, domain.MailboxState(l.state)) {
		return fmt.Errorf("--state: want empty, waiting, open, failing, frozen or damaged, got %q", domain.Shorten(l.state))
	}
	if !slices.Contains(survey.Orders, survey.Order(l.sort)) {
		return fmt.Errorf("--sort: want age or events, got %q", domain.Shorten(l.sort))
	}
	return nil
}

// A listOfQueues is a page of the hub's list, or several pages combined.
type listOfQueues struct {
	SurveyedAt *time.Time        `json:"surveyedAt,omitempty"`
	Matching   int               `json:"matching"`
	Queues     []json.RawMessage `json:"queues"`
	Next       string            `json:"next,omitempty"`
}

// A listedQueue contains the members of a queue that the table contains.
type listedQueue struct {
	Recipient   string     `json:"recipient"`
	State       string     `json:"state"`
	Waiting     int64      `json:"waiting"`
	AgeSeconds  *int64     `json:"ageSeconds"`
	LastPeek    *time.Time `json:"lastPeek"`
	LastDequeue *time.Time `json:"lastDequeue"`
	Groups      []struct {
		Open *struct {
			Opened   time.Time `json:"opened"`
			Failures int       `json:"failures"`
		} `json:"open"`
	} `json:"groups"`
}

// fetch reads pages until the limit is reached or the list ends.
func (l *queueList) fetch(ctx context.Context, hub *hubclient.Client) (*listOfQueues, error) {
	all := &listOfQueues{Queues: []json.RawMessage{}}
	for after := ""; ; after = all.Next {
		page, err := l.fetchPage(ctx, hub, after, min(l.limit-len(all.Queues), survey.MaxPage))
		if err != nil {
			return nil, err
		}
		all.SurveyedAt, all.Matching, all.Next = page.SurveyedAt, page.Matching, page.Next
		all.Queues = append(all.Queues, page.Queues...)
		if all.Next == "" || len(all.Queues) >= l.limit {
			return all, nil
		}
	}
}

func (l *queueList) fetchPage(ctx context.Context, hub *hubclient.Client, after string, size int) (*listOfQueues, error) {
	const limit = 256 << 20
	query := url.Values{"sort": {l.sort}, "size": {strconv.Itoa(size)}}
	if l.state != "" {
		query.Set("state", l.state)
	}
	if after != "" {
		query.Set("after", after)
	}
	resp, err := hub.Do(ctx, http.MethodGet, "/v1/admin/queues?"+query.Encode(), "", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	page := &listOfQueues{}
	if err := json.NewDecoder(io.LimitReader(resp.Body, limit)).Decode(page); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	return page, nil
}

// show prints the list as a table, and when the survey was made.
func (l *queueList) show(found *listOfQueues) error {
	if found.SurveyedAt == nil {
		fmt.Fprintln(l.p.err, "messagehub: the first survey has not read all queues yet; repeat the command in a while")
	}
	if len(found.Queues) == 0 {
		_, err := fmt.Fprintln(l.p.out, "no queue matches; the survey finds a new queue within seconds")
		return err
	}
	table := tabwriter.NewWriter(l.p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ACTOR\tSTATE\tWAITING\tOLDEST\tOPEN SINCE\tLAST PEEK\tLAST DEQUEUE")
	for _, text := range found.Queues {
		var q listedQueue
		if err := json.Unmarshal(text, &q); err != nil {
			return fmt.Errorf("the answer cannot be read: %w", err)
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", terminal.Printable(q.Recipient), terminal.Printable(q.State), q.Waiting,
			q.oldest(), formatTime(q.openSince()), formatTime(q.LastPeek), formatTime(q.LastDequeue))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if found.SurveyedAt != nil {
		fmt.Fprintf(l.p.out, "\n%d of %d, surveyed at %s\n", len(found.Queues), found.Matching, found.SurveyedAt.UTC().Format(time.RFC3339))
	}
	if found.Next != "" {
		fmt.Fprintln(l.p.err, "messagehub: the list is longer; --limit shows more of it, --state one state only")
	}
	return nil
}

func (q *listedQueue) oldest() string {
	switch {
	case q.Waiting == 0:
		return "-"
	case q.AgeSeconds == nil:
		return "?"
	}
	return (time.Duration(*q.AgeSeconds) * time.Second).String()
}

// openSince returns the time at which the oldest open bundle was opened.
func (q *listedQueue) openSince() *time.Time {
	var since *time.Time
	for i := range q.Groups {
		if open := q.Groups[i].Open; open != nil && (since == nil || open.Opened.Before(*since)) {
			since = &open.Opened
		}
	}
	return since
}

func formatTime(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}
