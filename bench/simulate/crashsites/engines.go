//go:build unix

package crashsites

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	bus "github.com/messagehub/messagehub/api/servicebus/embedded"
	cosmos "github.com/messagehub/messagehub/cosmos/embedded"
	blobs "github.com/messagehub/messagehub/repository/content/embedded"
)

const cosmosKey = cosmos.WellKnownKey

// engines are the external accounts of a hub, each in a separate process.
type engines struct {
	processes []*childProcess

	cosmos, bus, busAddress, account string
}

// startEngines starts the shipped emulators in a folder. The Cosmos DB account has Session consistency, so the hub
// must take the extra steps for stale reads.
func startEngines(ctx context.Context, program, folder string) (e *engines, err error) {
	e = &engines{}
	defer func() {
		if err != nil {
			e.killAll()
		}
	}()
	entities := filepath.Join(folder, "entities.json")
	if err := os.WriteFile(entities, []byte(busQueues()), 0o600); err != nil {
		return e, err
	}
	first := func(args ...string) (string, error) {
		name := args[0]
		args = append([]string{"emulator"}, append(args, "--listen", "127.0.0.1:0", "--data", filepath.Join(folder, name))...)
		p, err := startProcess(exec.Command(program, args...), "") //nolint:noctx,gosec // the program that was built for this; it ends by a signal
		if err != nil {
			return "", err
		}
		e.processes = append(e.processes, p)
		if err := p.awaitReady(ctx); err != nil {
			return "", fmt.Errorf("emulator %s: %w", name, err)
		}
		_, rest, _ := strings.Cut(p.first, "listens on ")
		return rest, nil
	}
	text, err := first("cosmos", "--consistency", "Session")
	if err != nil {
		return e, err
	}
	e.cosmos, _, _ = strings.Cut(text, " with key ")
	if text, err = first("servicebus", "--entities", entities); err != nil {
		return e, err
	}
	e.busAddress, e.bus, _ = strings.Cut(text, " with connection string ")
	if text, err = first("blob"); err != nil {
		return e, err
	}
	address, _, _ := strings.Cut(text, " with connection string ")
	e.account = accountAt(address)
	return e, nil
}

func accountAt(address string) string { return "http://" + address + "/" + blobs.WellKnownAccount }

func busAt(address string) string {
	return fmt.Sprintf("Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s;UseDevelopmentEmulator=true",
		address, bus.WellKnownKeyName, bus.WellKnownKey)
}

// busQueues returns the entities of the namespace, with short locks and a high delivery limit.
func busQueues() string {
	var all []string
	queue := func(name string, sessions bool) {
		all = append(all, fmt.Sprintf(`{"Name": %q, "Properties": {"RequiresSession": %t, "LockDuration": "PT5S", "MaxDeliveryCount": 1000}}`, name, sessions))
	}
	queue("dataavailable-fifo", true)
	queue("dataavailable", false)
	for _, domain := range []string{"charges", "timeseries", "meteringpoints", "marketroles", "wholesale"} {
		queue(domain, true)
		queue(domain+"-reply", true)
		queue(domain+"-dequeue", false)
	}
	return `{"Queues": [` + strings.Join(all, ",") + `]}`
}

func (e *engines) killAll() {
	if e == nil {
		return
	}
	for _, p := range e.processes {
		p.killProcess()
	}
}
