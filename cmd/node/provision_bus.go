package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/deployment"
	"github.com/messagehub/messagehub/cosmos/client"
)

func provisionQueues(ctx context.Context, cfg *config.Config, po ProvisionOptions, opts *Options) ([]Resource, error) {
	bus, namespace, err := manageBus(cfg, opts)
	if err != nil {
		return nil, err
	}
	var all []Resource
	queues := deployment.Queues(cfg)
	for i := range queues {
		r := newQueueResource(&queues[i])
		provisionQueue(ctx, bus, po, &queues[i], &r)
		if len(r.Left) > 0 {
			r.Commands = queueCommands(namespace, &queues[i], r.State)
		}
		all = append(all, r)
	}
	if po.ListExtra {
		all = append(all, listExtraQueues(ctx, bus, queues)...)
	}
	return all, ctx.Err()
}

// listExtraQueues returns the namespace's queues that are not in queues. Such a
// queue may belong to another system, or to an earlier configuration of the
// hub; in that case messages may wait in it. It returns none if the credential
// may not list queues.
func listExtraQueues(ctx context.Context, bus *admin.Client, queues []deployment.Queue) (extra []Resource) {
	for pager := bus.NewListQueuesPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return extra
		}
		for i := range page.Queues {
			name := page.Queues[i].QueueName
			if !slices.ContainsFunc(queues, func(q deployment.Queue) bool { return strings.EqualFold(q.Name, name) }) {
				extra = append(extra, Resource{Service: "servicebus", Kind: "queue", Name: name, State: client.StateExtra})
			}
		}
	}
	return extra
}

// manageBus returns a management client for the namespace, and the namespace's
// name.
func manageBus(cfg *config.Config, opts *Options) (bus *admin.Client, namespace string, err error) {
	o := &admin.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: opts.toServices()}}
	o.Retry.MaxRetries = 2
	connection := cfg.ServiceBus.Connection.Reveal()
	if connection == "" {
		credential, err := opts.identity()
		if err != nil {
			return nil, "", err
		}
		bus, err := admin.NewClient(cfg.ServiceBus.Namespace, credential, o)
		return bus, accountName("sb://" + cfg.ServiceBus.Namespace), err
	}
	if isEmulator(connection) && opts.Transport == nil {
		o.Transport = plainTransport{o.Transport}
	}
	bus, err = admin.NewClientFromConnectionString(connection, o)
	if err != nil {
		return nil, "", errors.New("servicebus.connection: want a connection string of a namespace")
	}
	for part := range strings.SplitSeq(connection, ";") {
		if name, value, _ := strings.Cut(part, "="); strings.EqualFold(strings.TrimSpace(name), "Endpoint") {
			namespace = accountName(value)
		}
	}
	return bus, namespace, nil
}

// A plainTransport sends the management client's HTTPS requests over HTTP, as
// emulators require.
type plainTransport struct{ next policy.Transporter }

func (t plainTransport) Do(req *http.Request) (*http.Response, error) {
	plain := req.Clone(req.Context())
	plain.URL.Scheme = "http"
	return t.next.Do(plain)
}

func newQueueResource(q *deployment.Queue) Resource {
	return Resource{Service: "servicebus", Kind: "queue", Name: q.Name, State: client.StateOK}
}

func provisionQueue(ctx context.Context, bus *admin.Client, po ProvisionOptions, q *deployment.Queue, r *Resource) {
	found, err := bus.GetQueue(ctx, q.Name, nil)
	switch {
	case err != nil:
		r.State, r.Left = client.StateUnknown, []string{explainBus("read queue "+q.Name, err)}
	case found == nil && po.CheckOnly:
		r.State, r.Left = client.StateMissing, []string{"queue " + q.Name + " does not exist"}
	case found == nil:
		createQueue(ctx, bus, q, r)
	default:
		correctQueue(ctx, bus, po, q, &found.QueueProperties, r)
	}
}

func createQueue(ctx context.Context, bus *admin.Client, q *deployment.Queue, r *Resource) {
	properties := &admin.QueueProperties{RequiresSession: &q.Sessions}
	for _, d := range compareQueue(q, properties) {
		d.correct(properties)
	}
	_, err := bus.CreateQueue(ctx, q.Name, &admin.CreateQueueOptions{Properties: properties})
	switch {
	case err == nil:
		r.State = client.StateCreated
	case isAlreadyCreated(ctx, bus, q, err):
		r.State = client.StateOK
	default:
		r.State, r.Left = client.StateMissing, []string{explainBus("create queue "+q.Name, err)}
	}
}

// isAlreadyCreated reports whether a creation failed because another process
// has already created an equal queue.
func isAlreadyCreated(ctx context.Context, bus *admin.Client, q *deployment.Queue, refusal error) bool {
	if busStatus(refusal) != http.StatusConflict {
		return false
	}
	now, err := bus.GetQueue(ctx, q.Name, nil)
	return err == nil && now != nil && isValue(now.RequiresSession, q.Sessions) && len(compareQueue(q, &now.QueueProperties)) == 0
}

// correctQueue changes those properties of an existing queue that differ from
// the table and can be changed. If po.CheckOnly is true, it only adds notes to
// r, because the hub can work with such a queue.
func correctQueue(ctx context.Context, bus *admin.Client, po ProvisionOptions, q *deployment.Queue, has *admin.QueueProperties, r *Resource) {
	if has.RequiresSession != nil && *has.RequiresSession != q.Sessions {
		want := map[bool]string{true: "with sessions", false: "without sessions"}
		r.State, r.Left = client.StateUnfit, []string{fmt.Sprintf(
			"queue %s is %s, want one %s; this cannot be changed: delete it when it is empty, and run messagehub provision",
			q.Name, want[*has.RequiresSession], want[q.Sessions])}
		return
	}
	differences := compareQueue(q, has)
	if len(differences) == 0 {
		return
	}
	if po.CheckOnly {
		for _, d := range differences {
			r.Notes = append(r.Notes, d.String())
		}
		return
	}
	for _, d := range differences {
		d.correct(has)
	}
	_, err := bus.UpdateQueue(ctx, q.Name, *has, nil)
	switch {
	case err == nil:
		r.State = client.StateUpdated
		for _, d := range differences {
			r.Changes = append(r.Changes, d.change())
		}
	case isAlreadyCreated(ctx, bus, q, err):
	default:
		r.State, r.Left = client.StateWrong, []string{explainBus("change queue "+q.Name, err)}
		for _, d := range differences {
			r.Left = append(r.Left, d.String())
		}
	}
}

// queueCommands returns Azure CLI commands that create or correct a queue.
func queueCommands(namespace string, q *deployment.Queue, state client.ProvisionState) []string {
	where := fmt.Sprintf("--namespace-name %s --resource-group %s", namespace, placeholder)
	create := fmt.Sprintf("az servicebus queue create %s %s", where, q.Arguments())
	switch state {
	case client.StateUnfit:
		return []string{fmt.Sprintf("az servicebus queue delete %s --name %s   # deletes what it holds", where, q.ResourceName()), create}
	case client.StateWrong:
		return []string{fmt.Sprintf("az servicebus queue update %s --name %s %s", where, q.ResourceName(), q.Changeable())}
	default:
		return []string{create}
	}
}

// explainBus returns a short error for a failed request, because the client's
// error is a page long. If the namespace refused the request, the error names
// the missing right.
func explainBus(what string, err error) string {
	switch status := busStatus(err); status {
	case 0:
		return fmt.Sprintf("%s: %v", what, err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Sprintf("%s: the namespace answered %d; use a connection string with the Manage right, or an identity with the role Azure Service Bus Data Owner", what, status)
	default:
		return fmt.Sprintf("%s: the namespace answered %d %s", what, status, http.StatusText(status))
	}
}

func busStatus(err error) int {
	if answer, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return answer.StatusCode
	}
	return 0
}
