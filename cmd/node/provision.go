package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/messaging/azservicebus/admin"

	"github.com/messagehub/messagehub/api/servicebus/embedded"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos"
	"github.com/messagehub/messagehub/cosmos/client"
	objectstore "github.com/messagehub/messagehub/cosmos/objects"
	pushstore "github.com/messagehub/messagehub/cosmos/push"
	"github.com/messagehub/messagehub/repository/content"
)

// ProvisionOptions say how far Provision goes.
type ProvisionOptions struct {
	CheckOnly   bool // create and change nothing
	NarrowIndex bool // remove index paths that no query of the hub needs
	Throughput  bool // create Cosmos containers with the suggested throughput
}

// A Resource is one that a deployment needs, as Provision found or left it.
type Resource struct {
	Service  string // cosmos, blob or servicebus
	Kind     string // database, container or queue
	Name     string
	State    client.ProvisionState
	Changes  []string // what Provision changed
	Notes    []string // what works, but at a cost
	Left     []string // what is wrong, or could not be done
	Commands []string // of the Azure CLI that do what is left
}

// Provision creates and corrects what cfg needs on Azure, as far as the credentials
// allow, and returns every resource. What the node embeds is not among them: the node
// creates it by itself.
func Provision(ctx context.Context, cfg *config.Config, po ProvisionOptions, opts Options) ([]Resource, error) {
	opts.connect(cfg)
	defer opts.network.close()
	var all []Resource
	if !cfg.Embedded() {
		found, err := provisionCosmos(ctx, cfg, po, &opts)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if !cfg.EmbeddedBlob() {
		for _, name := range []string{cfg.Blob.ContentContainer(), cfg.Blob.ExchangeContainer()} {
			found, err := provisionBlobs(ctx, cfg, po, &opts, name)
			if err != nil {
				return nil, err
			}
			all = append(all, found)
		}
	}
	if !cfg.EmbeddedBus() {
		found, err := provisionQueues(ctx, cfg, po, &opts)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// Containers returns the containers of Cosmos that a hub needs: those of events and bundles, and
// those of subscriptions and calls and of objects, without which it serves everything else.
func Containers() []client.ContainerSpec {
	return slices.Concat(cosmos.Containers(), pushstore.Containers(), objectstore.Containers())
}

func provisionCosmos(ctx context.Context, cfg *config.Config, po ProvisionOptions, opts *Options) ([]Resource, error) {
	connection, err := accountConnection(cfg, opts)
	if err != nil {
		return nil, err
	}
	db, err := client.Connect(connection)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	found, err := client.New(db, client.Options{Containers: Containers(), Random: opts.Random}).Provision(ctx, client.ProvisionOptions{
		CheckOnly: po.CheckOnly, Repair: true, NarrowIndex: po.NarrowIndex, Throughput: po.Throughput,
	})
	if err != nil {
		return nil, err
	}
	all := make([]Resource, len(found))
	for i := range found {
		f := &found[i]
		all[i] = Resource{Service: "cosmos", Kind: f.Kind, Name: f.Name, State: f.State, Changes: f.Changes, Notes: f.Notes}
		for _, err := range f.Left {
			all[i].Left = append(all[i].Left, err.Error())
		}
		all[i].Commands = cosmosCommands(cfg, f)
	}
	return all, nil
}

// placeholder stands in a command for what the settings do not say.
const placeholder = "RESOURCE_GROUP"

// cosmosCommands returns the commands that create or correct a resource of Cosmos.
func cosmosCommands(cfg *config.Config, p *client.Provisioned) []string {
	account := accountName(cfg.Cosmos.Endpoint)
	where := fmt.Sprintf("--account-name %s --resource-group %s", account, placeholder)
	if p.Spec == nil {
		if p.State == client.StateMissing || p.State == client.StateUnknown {
			return []string{fmt.Sprintf("az cosmosdb sql database create %s --name %s", where, p.Name)}
		}
		return nil
	}
	where = fmt.Sprintf("%s --database-name %s --name %s", where, cfg.Cosmos.Database, p.Name)
	ttl := ""
	if p.Spec.Expires {
		ttl = " --ttl -1"
	}
	create := fmt.Sprintf("az cosmosdb sql container create %s --partition-key-path %s --partition-key-version 2%s --max-throughput %d --idx '%s'",
		where, p.Spec.PartitionKey, ttl, p.Spec.Throughput, p.Spec.IndexingPolicy())
	switch p.State {
	case client.StateMissing, client.StateUnknown:
		return []string{create}
	case client.StateWrong:
		return []string{fmt.Sprintf("az cosmosdb sql container update %s --ttl -1 --idx '%s'", where, p.Spec.IndexingPolicy())}
	case client.StateUnfit:
		return []string{fmt.Sprintf("az cosmosdb sql container delete %s   # deletes what it holds", where), create}
	default:
		return nil
	}
}

// accountName returns the name of the account or namespace that an endpoint on Azure
// belongs to, or else a placeholder.
func accountName(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil || net.ParseIP(u.Hostname()) != nil {
		return "ACCOUNT"
	}
	name, zone, _ := strings.Cut(u.Hostname(), ".")
	if zone == "" {
		return "ACCOUNT"
	}
	return name
}

func provisionBlobs(ctx context.Context, cfg *config.Config, po ProvisionOptions, opts *Options, name string) (Resource, error) {
	r := Resource{Service: "blob", Kind: "container", Name: name, State: client.StateOK}
	o, err := blobOptions(cfg, opts, name)
	if err != nil {
		return r, err
	}
	o.Create = !po.CheckOnly
	status, err := content.ProvisionBlobs(ctx, o)
	where := fmt.Sprintf("--account-name %s --name %s", accountName(cfg.Blob.Endpoint), name)
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case err != nil:
		r.State, r.Left = client.StateUnknown, []string{err.Error()}
		r.Commands = []string{"az storage container create " + where}
	case !status.Exists:
		r.State, r.Left = client.StateMissing, []string{"container " + name + " does not exist"}
		r.Commands = []string{"az storage container create " + where}
	case status.Created:
		r.State = client.StateCreated
	case status.PublicAccess != "":
		r.State, r.Left = client.StateWrong, []string{fmt.Sprintf("container %s can be read by anyone (public access: %s)", name, status.PublicAccess)}
		r.Commands = []string{"az storage container set-permission --public-access off " + where}
	}
	return r, nil
}

func provisionQueues(ctx context.Context, cfg *config.Config, po ProvisionOptions, opts *Options) ([]Resource, error) {
	bus, namespace, err := manageBus(cfg, opts)
	if err != nil {
		return nil, err
	}
	var all []Resource
	for _, q := range entities(cfg).Queues {
		r := Resource{Service: "servicebus", Kind: "queue", Name: q.Name, State: client.StateOK}
		provisionQueue(ctx, bus, po, &q, &r)
		if len(r.Left) > 0 {
			r.Commands = queueCommands(namespace, &q, r.State)
		}
		all = append(all, r)
	}
	return all, ctx.Err()
}

// manageBus returns a management client of the namespace, and its name.
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

// plainTransport sends requests to an emulator over HTTP; the management client
// knows HTTPS alone.
type plainTransport struct{ next policy.Transporter }

func (t plainTransport) Do(req *http.Request) (*http.Response, error) {
	plain := req.Clone(req.Context())
	plain.URL.Scheme = "http"
	return t.next.Do(plain)
}

func provisionQueue(ctx context.Context, bus *admin.Client, po ProvisionOptions, q *embedded.QueueSetup, r *Resource) {
	found, err := bus.GetQueue(ctx, q.Name, nil)
	switch {
	case err != nil:
		r.State, r.Left = client.StateUnknown, []string{explainBus("read queue "+q.Name, err)}
	case found == nil && po.CheckOnly:
		r.State, r.Left = client.StateMissing, []string{"queue " + q.Name + " does not exist"}
	case found == nil:
		properties := &admin.QueueProperties{RequiresSession: &q.Properties.RequiresSession}
		if life := q.Properties.DefaultMessageTimeToLive; life != "" {
			properties.DefaultMessageTimeToLive = &life
		}
		r.State = client.StateCreated
		if _, err := bus.CreateQueue(ctx, q.Name, &admin.CreateQueueOptions{Properties: properties}); err != nil && busStatus(err) != http.StatusConflict {
			r.State, r.Left = client.StateMissing, []string{explainBus("create queue "+q.Name, err)}
		}
	default:
		compareQueue(q, &found.QueueProperties, r)
	}
}

// compareQueue reports how a queue differs from what the hub needs.
func compareQueue(q *embedded.QueueSetup, has *admin.QueueProperties, r *Resource) {
	const endless = "P10675199D"
	if has.RequiresSession != nil && *has.RequiresSession != q.Properties.RequiresSession {
		want := map[bool]string{true: "with sessions", false: "without sessions"}
		r.State, r.Left = client.StateUnfit, []string{fmt.Sprintf(
			"queue %s is %s, want one %s; this cannot be changed: delete it when it is empty, and run messagehub provision",
			q.Name, want[*has.RequiresSession], want[q.Properties.RequiresSession])}
	}
	if life := has.DefaultMessageTimeToLive; life != nil && q.Properties.DefaultMessageTimeToLive == "" && !strings.HasPrefix(*life, endless) {
		r.Notes = append(r.Notes, fmt.Sprintf("messages expire after %s; the hub loses those that it has not received by then", *life))
	}
}

// queueCommands returns the commands that create a queue.
func queueCommands(namespace string, q *embedded.QueueSetup, state client.ProvisionState) []string {
	where := fmt.Sprintf("--namespace-name %s --resource-group %s --name %s", namespace, placeholder, q.Name)
	create := fmt.Sprintf("az servicebus queue create %s --enable-session %t", where, q.Properties.RequiresSession)
	if life := q.Properties.DefaultMessageTimeToLive; life != "" {
		create += " --default-message-time-to-live " + life
	}
	if state == client.StateUnfit {
		return []string{fmt.Sprintf("az servicebus queue delete %s   # deletes what it holds", where), create}
	}
	return []string{create}
}

// explainBus returns a short error for a failed request, with the right that it needs
// if the namespace refused it. The error of the client is a page long.
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
