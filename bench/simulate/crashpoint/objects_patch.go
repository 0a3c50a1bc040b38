//go:build unix

package crashpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

const patchedKeys = 4

// A patchClient changes attributes of the objects of buckets of its own.
type patchClient struct {
	w      *world
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

// patchBucket adds an attribute after another one to a spilled row, and to the current row of each object,
// which an event replaces before the last one.
func (c *patchClient) patchBucket(ctx context.Context, bucket string) error {
	send := func(sequencers ...int) error {
		var message []sentEvent
		for key := range patchedKeys {
			for _, s := range sequencers {
				message = append(message, sentEvent{fmt.Sprint("key-", key), fmt.Sprintf("C@%04X", s)})
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
		for key := range patchedKeys {
			for _, row := range []string{"?row=C@0010", ""} {
				if err := c.patch(ctx, fmt.Sprintf("/%s/key-%d%s", bucket, key, row), name); err != nil {
					return err
				}
			}
		}
	}
	stored, err := c.w.objectsOf(ctx, bucket)
	if err != nil {
		return err
	}
	want := fmt.Sprint(map[string]string{"Created 0010": `{"a":1,"b":1,"c":1}`, "Created 0060": `{"a":1,"b":1}`, "Created 0070": `{"c":1}`})
	for key := range patchedKeys {
		if o := stored[fmt.Sprint("key-", key)]; len(o.Duplicates) != 7 || fmt.Sprint(o.Attributes) != want {
			return fmt.Errorf("L10: object key-%d has %d rows, and the attributes %v; want %s", key, len(o.Duplicates), o.Attributes, want)
		}
	}
	return nil
}

// patch adds an attribute until that is answered. A 400 is right only after an answer that may have been lost:
// no patch replaces an attribute.
func (c *patchClient) patch(ctx context.Context, path, name string) error {
	body := fmt.Appendf(nil, `[{"op":"add","path":"/%s","value":1}]`, name)
	lost := false
	err := c.w.load.retry(ctx, func() error {
		_, err := c.w.load.ask(ctx, http.MethodPatch, path, "", body)
		if refused, is := errors.AsType[*refusal](err); is && refused.status == http.StatusBadRequest && lost {
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
