package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/messagehub/messagehub/cmd/messagehub/internal/hubclient"
	"github.com/messagehub/messagehub/cmd/terminal"
)

// showRows prints a table of rows, or the text none if there are no rows. If
// the list is longer, it says so on standard error.
func (o *objectsCommand) showRows(texts []json.RawMessage, hasMore bool, none string) error {
	rows, err := decodeAll[hubclient.Object](texts)
	if err != nil {
		return err
	}
	switch {
	case o.json:
		err = o.p.showElements("objects", texts)
	case len(rows) == 0:
		_, err = fmt.Fprintln(o.p.out, none)
	default:
		table := tabwriter.NewWriter(o.p.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "BUCKET\tKEY\tVERSION\tEVENT\tTIME\tSIZE\tCURRENT\tID")
		for i := range rows {
			r := &rows[i]
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", shorten(r.Bucket, 40), shorten(r.Key, 80), shorten(r.VersionID, 12), eventOf(r), timeOf(r.EventTime), sizeOf(r.Size),
				map[bool]string{true: "yes", false: "-"}[r.IsCurrentState], terminal.Printable(r.ID))
		}
		err = table.Flush()
	}
	if err == nil && hasMore {
		fmt.Fprintln(o.p.err, "messagehub: the list is longer; --limit shows more of it")
	}
	return err
}

func decodeAll[T any](texts []json.RawMessage) ([]T, error) {
	all := make([]T, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal(text, &all[i]); err != nil {
			return nil, fmt.Errorf("the answer cannot be read: %w", err)
		}
	}
	return all, nil
}

func eventOf(r *hubclient.Object) string {
	if r.IsDeleteMarker {
		return "Deleted, a marker"
	}
	return shorten(r.EventType, 20)
}

func timeOf(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

func sizeOf(size *int64) string {
	if size == nil {
		return "-"
	}
	return strconv.FormatInt(*size, 10)
}

// showObject prints the members of a row, one per line.
func (o *objectsCommand) showObject(text json.RawMessage) error {
	var r hubclient.Object
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("the answer cannot be read: %w", err)
	}
	table := tabwriter.NewWriter(o.p.out, 0, 0, 2, ' ', 0)
	line := func(name, value string) { fmt.Fprintf(table, "%s\t%s\n", name, terminal.Printable(value)) }
	known := func(name string, value *string) {
		if value != nil {
			line(name, *value)
		}
	}
	line("id", r.ID)
	line("bucket", r.Bucket)
	line("key", r.Key)
	line("version", r.VersionID)
	line("event", eventOf(&r))
	line("time", timeOf(r.EventTime))
	line("sequencer", r.Sequencer)
	known("reason", r.Reason)
	line("size", sizeOf(r.Size))
	known("etag", r.ETag)
	known("sha256", r.SHA256)
	if r.LastModifiedDate != nil {
		line("last modified", timeOf(r.LastModifiedDate))
	}
	known("storage class", r.StorageClass)
	known("archive status", r.ArchiveStatus)
	known("ingest id", r.IngestID)
	if text := string(r.Attributes); text != "" && text != "null" {
		line("attributes", text)
	}
	line("current", strconv.FormatBool(r.IsCurrentState))
	line("accessible", strconv.FormatBool(r.IsAccessible))
	if r.IsDoubtful {
		line("doubtful", "the store documents no order of the sequencers of this object")
	}
	line("duplicates", strconv.FormatInt(r.Duplicates, 10))
	return table.Flush()
}

// showPairs prints a table of creations and deletions.
func (o *objectsCommand) showPairs(texts []json.RawMessage) error {
	pairs, err := decodeAll[hubclient.ObjectPair](texts)
	if err != nil {
		return err
	}
	if o.json {
		return o.p.showElements("pairs", texts)
	}
	table := tabwriter.NewWriter(o.p.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "VERSION\tCREATED\tDELETED\tSIZE\tDUPLICATES\tREORDERED")
	for i := range pairs {
		p := &pairs[i]
		version, size, created, deleted := "-", "-", "-", "-"
		if p.Deleted != nil {
			version, deleted = p.Deleted.VersionID, timeOf(p.Deleted.EventTime)
		}
		if p.Created != nil {
			version, size, created = p.Created.VersionID, sizeOf(p.Created.Size), timeOf(p.Created.EventTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\n", shorten(version, 40), created, deleted, size, p.Duplicates, p.Reordered)
	}
	return table.Flush()
}
