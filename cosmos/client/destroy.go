package client

import (
	"context"
	"net/http"
)

// Destroy deletes the containers with all documents, and returns the state of each resource. It does
// not delete the database, which may have other containers.
func (c *Client) Destroy(ctx context.Context) []Provisioned {
	all := make([]Provisioned, len(c.opts.Containers))
	for i := range all {
		spec := &c.opts.Containers[i]
		all[i] = Provisioned{Kind: "container", Name: spec.Name, Spec: spec, State: StateDeleted}
		container, err := c.db.Container(spec.Name)
		if err == nil {
			_, err = container.Delete(ctx, nil)
		}
		switch {
		case err == nil:
		case StatusOf(err) == http.StatusNotFound:
			all[i].State = StateMissing
		default:
			all[i].State, all[i].Left = StateUnknown, []error{explainDenied("delete container "+spec.Name, err)}
		}
	}
	return all
}
