//go:build unix

package crashsites

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/messagehub/messagehub/domain"
)

const (
	patchedKeys = 16 // number of keys; together they have 112 rows, but a job saves its cursor after 100
	singlyKeys  = 3  // number of keys whose rows are also patched one by one
)

// A patchClient changes attributes of the objects in its buckets.
type patchClient struct {
	w      *crashRun
	number int
}

func (c *patchClient) patchUntil(ctx context.Context, stop <-chan struct{}) error {
	for n := 0; ctx.Err() == nil; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		bucket := fmt.Sprintf("patched-%d-%d", c.number, n)
		if err := c.patchBucket(ctx, bucket); err != nil {
			return fmt.Errorf("bucket %s: %w", bucket, err)
		}
	}
	return ctx.Err()
}

// patchBucket adds three attributes to a spilled row and to the current row of some objects. Before the third
// attribute, an event replaces the current row. After that, a job adds one attribute to all rows.
func (c *patchClient) patchBucket(ctx context.Context, bucket string) error {
	send := func(sequencers ...int) error {
		var message []objectEvent
		for key := range patchedKeys {
			for _, s := range sequencers {
				message = append(message, objectEvent{fmt.Sprint("key-", key), fmt.Sprintf("C@%04X", s)})
			}
		}
		return c.w.sendEvents(ctx, "/"+bucket, message, func() {})
	}
	if err := send(0x10, 0x20, 0x30, 0x40, 0x50, 0x60); err != nil {
		return err
	}
	for i, name := range []string{"a", "b", "c"} {
		if i == 2 {
			if err := send(0x70); err != nil {
				return err
			}
		}
		for key := range singlyKeys {
			for _, row := range []string{"?row=C@0010", ""} {
				if err := c.addAttribute(ctx, fmt.Sprintf("/%s/key-%d%s", bucket, key, row), name); err != nil {
					return err
				}
			}
		}
	}
	// If the start of a job was not answered, a second job may run as well. The second job finds the attributes that
	// the first job has added.
	found, err := c.w.awaitJob(ctx, "/"+bucket+"/patches", []byte(`[{"op":"add","path":"/d","value":1}]`))
	switch {
	case err != nil:
		return err
	case found.State != domain.JobCompleted:
		return fmt.Errorf("the job has ended as %+v", found)
	}
	stored, err := c.w.objectsOf(ctx, bucket)
	if err != nil {
		return err
	}
	for key := range patchedKeys {
		want := make(map[string]string)
		for _, sequencer := range []string{"0010", "0020", "0030", "0040", "0050", "0060", "0070"} {
			want["Created "+sequencer] = `{"d":1}`
		}
		if key < singlyKeys {
			want["Created 0010"], want["Created 0060"], want["Created 0070"] = `{"a":1,"b":1,"c":1,"d":1}`, `{"a":1,"b":1,"d":1}`, `{"c":1,"d":1}`
		}
		if o := stored[fmt.Sprint("key-", key)]; !maps.Equal(o.Attributes, want) {
			return fmt.Errorf("L10: object key-%d has the attributes %v, want %v", key, o.Attributes, want)
		}
	}
	return nil
}

// addAttribute repeats a patch until it is answered. A patch cannot replace an attribute, so a repeated patch may get a
// 400 if the response to an earlier attempt was lost. A 400 to the first attempt is a violation.
func (c *patchClient) addAttribute(ctx context.Context, path, name string) error {
	body := fmt.Appendf(nil, `[{"op":"add","path":"/%s","value":1}]`, name)
	lost := false
	err := c.w.load.retryUntilDone(ctx, func() error {
		_, err := c.w.load.sendRequest(ctx, http.MethodPatch, path, "", body)
		if refused, is := errors.AsType[*refusalError](err); is && refused.status == http.StatusBadRequest && lost {
			return nil
		}
		lost = lost || err != nil
		return err
	})
	if err != nil {
		return fmt.Errorf("patch %s: %w", path, err)
	}
	return nil
}
