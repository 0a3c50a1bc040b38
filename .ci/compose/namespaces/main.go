// Command namespaces runs the MessageHub services of deploy/compose.yaml without a container
// engine: each service in a network namespace with an address and the names of the others, on the
// files of the image, as the user of the image. It prints the time until the first message that the
// domain has sent is confirmed by the actor, and fails if a health check or a service fails, or if
// a service logs a warning. It needs Linux, root and the program ip. It removes namespaces and
// files at the end. If a run was killed, its process id is in the names of the namespaces and files
// that remain.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "namespaces: want the compose file, and the folder of the image's files")
		os.Exit(2)
	}
	if err := runTrial(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "namespaces:", err)
		os.Exit(1)
	}
}

// stepTimeout is the time limit of each step.
const stepTimeout = 60 * time.Second

// A trial is one run.
type trial struct {
	image    string // folder with the files of the image
	folder   string // folder with the files of each service, its volumes and its log
	bridge   string
	subnet   string // prefix of the addresses, such as 10.213.7
	services types.Services
	names    []string
	running  map[string]*service
	order    []string
}

// A service is a started process.
type service struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
	err    error         // error with which the process ended
}

func runTrial(ctx context.Context, file, image string) (err error) {
	project, err := loadProject(ctx, file)
	if err != nil {
		return err
	}
	t := &trial{image: image, services: project.Services, running: make(map[string]*service), subnet: fmt.Sprintf("10.213.%d", os.Getpid()%250), bridge: fmt.Sprintf("mhb%d", os.Getpid())}
	for name, s := range project.Services {
		if s.Build != nil {
			t.names = append(t.names, name)
		}
	}
	slices.Sort(t.names)
	if t.folder, err = os.MkdirTemp("", "messagehub-compose-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stopServices(), t.removeFiles()) }()
	if err := t.createNetwork(); err != nil {
		return err
	}
	began := time.Now()
	if err := t.startServices(ctx); err != nil {
		return err
	}
	if err := t.waitForText(ctx, "actor", "dequeued "); err != nil {
		return err
	}
	fmt.Printf("from the first command to the first confirmed message: %s\n", time.Since(began).Round(time.Millisecond))
	return errors.Join(t.waitForText(ctx, "domain", "notice: "), t.checkLogs())
}

func loadProject(ctx context.Context, file string) (*types.Project, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return loader.LoadWithContext(ctx, types.ConfigDetails{
		WorkingDir: filepath.Dir(file), ConfigFiles: []types.ConfigFile{{Filename: file, Content: text}}, Environment: types.Mapping{},
	})
}

// runSystemCommand runs a command of the system.
func runSystemCommand(name string, args ...string) error {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

func (t *trial) networkNamespace(name string) string {
	return fmt.Sprintf("mh%d-%s", os.Getpid(), name)
}
func (t *trial) rootFolder(name string) string   { return filepath.Join(t.folder, "root", name) }
func (t *trial) volumeFolder(name string) string { return filepath.Join(t.folder, "volume", name) }
func (t *trial) logFile(name string) string      { return filepath.Join(t.folder, name+".log") }

// createNetwork creates the network of the services, and their files.
func (t *trial) createNetwork() error {
	hosts := "127.0.0.1 localhost\n"
	for i, name := range t.names {
		hosts += fmt.Sprintf("%s.%d %s\n", t.subnet, i+2, name)
	}
	if err := runSystemCommand("ip", "link", "add", t.bridge, "type", "bridge"); err != nil {
		return err
	}
	if err := runSystemCommand("ip", "link", "set", t.bridge, "up"); err != nil {
		return err
	}
	for i, name := range t.names {
		ns, outer := t.networkNamespace(name), fmt.Sprintf("mh%d.%d", i, os.Getpid())
		for _, args := range [][]string{
			{"netns", "add", ns},
			{"link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", ns},
			{"link", "set", outer, "master", t.bridge, "up"},
			{"-n", ns, "addr", "add", fmt.Sprintf("%s.%d/24", t.subnet, i+2), "dev", "eth0"},
			{"-n", ns, "link", "set", "eth0", "up"},
			{"-n", ns, "link", "set", "lo", "up"},
		} {
			if err := runSystemCommand("ip", args...); err != nil {
				return err
			}
		}
		if err := t.makeFiles(name, hosts); err != nil {
			return err
		}
	}
	return nil
}

// makeFiles copies the image for a service, and creates the service's volumes.
func (t *trial) makeFiles(name, hosts string) error {
	root := t.rootFolder(name)
	if err := os.MkdirAll(filepath.Dir(root), 0o755); err != nil {
		return err
	}
	if err := runSystemCommand("cp", "-a", t.image, root); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(root, "etc/hosts"), []byte(hosts), 0o644); err != nil {
		return err
	}
	for _, v := range t.services[name].Volumes {
		if err := os.MkdirAll(filepath.Join(root, v.Target), 0o755); err != nil {
			return err
		}
		if _, err := os.Stat(t.volumeFolder(v.Source)); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(t.volumeFolder(v.Source)), 0o755); err != nil {
			return err
		}
		// A new volume is a copy of the folder at which it is mounted.
		if err := runSystemCommand("cp", "-a", filepath.Join(t.image, "data"), t.volumeFolder(v.Source)); err != nil {
			return err
		}
	}
	return nil
}

// startServices starts each service once its dependencies are healthy or have
// ended.
func (t *trial) startServices(ctx context.Context) error {
	for len(t.order) < len(t.names) {
		before := len(t.order)
		for _, name := range t.names {
			if t.running[name] != nil || !t.isStartable(name) {
				continue
			}
			if err := t.awaitDependencies(ctx, name); err != nil {
				return err
			}
			if err := t.startService(name); err != nil {
				return err
			}
		}
		if len(t.order) == before {
			return errors.New("services wait for each other")
		}
	}
	return nil
}

func (t *trial) isStartable(name string) bool {
	for dependency := range t.services[name].DependsOn {
		if t.running[dependency] == nil {
			return false
		}
	}
	return true
}

func (t *trial) awaitDependencies(ctx context.Context, name string) error {
	for dependency, d := range t.services[name].DependsOn {
		var err error
		switch d.Condition {
		case types.ServiceConditionHealthy:
			err = t.awaitHealth(ctx, dependency)
		case types.ServiceConditionCompletedSuccessfully:
			err = t.awaitEnd(dependency)
		}
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", dependency, err, t.readLog(dependency))
		}
	}
	return nil
}

// newCommand returns a command that runs inside a service.
func (t *trial) newCommand(name string, args []string) *exec.Cmd {
	s, root := t.services[name], t.rootFolder(name)
	script := ""
	for _, v := range s.Volumes {
		script += fmt.Sprintf("mount --bind '%s' '%s%s'; ", t.volumeFolder(v.Source), root, v.Target)
		if v.ReadOnly {
			script += fmt.Sprintf("mount -o remount,bind,ro '%s%s'; ", root, v.Target)
		}
	}
	script += fmt.Sprintf(`cd '%s/data'; exec chroot --userspec=65532:65532 '%s' "$@"`, root, root)
	cmd := exec.Command("ip", append([]string{"netns", "exec", t.networkNamespace(name), "/bin/sh", "-ec", script, "sh"}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "MESSAGEHUB_DATA=/data"} // the environment of the image
	for _, key := range slices.Sorted(maps.Keys(s.Environment)) {
		if value := s.Environment[key]; value != nil {
			cmd.Env = append(cmd.Env, key+"="+*value)
		}
	}
	return cmd
}

func (t *trial) startService(name string) error {
	log, err := os.Create(t.logFile(name))
	if err != nil {
		return err
	}
	defer log.Close()
	s := &service{cmd: t.newCommand(name, append([]string{"/usr/bin/messagehub"}, t.services[name].Command...)), exited: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		return err
	}
	go func() {
		s.err = s.cmd.Wait()
		close(s.exited)
	}()
	t.running[name], t.order = s, append(t.order, name)
	return nil
}

// readLog returns the output of a service.
func (t *trial) readLog(name string) string {
	text, err := os.ReadFile(t.logFile(name))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

var errStillRuns = fmt.Errorf("it still runs after %s", stepTimeout)

func (t *trial) awaitEnd(name string) error {
	select {
	case <-t.running[name].exited:
		return t.running[name].err
	case <-time.After(stepTimeout):
		return errStillRuns
	}
}

// awaitHealth runs the health check of a service until it succeeds.
func (t *trial) awaitHealth(ctx context.Context, name string) error {
	test := t.services[name].HealthCheck.Test
	return t.pollService(ctx, name, func() error {
		if out, err := t.newCommand(name, test[1:]).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// waitForText waits until a service has written a text.
func (t *trial) waitForText(ctx context.Context, name, text string) error {
	return t.pollService(ctx, name, func() error {
		if !strings.Contains(t.readLog(name), text) {
			return fmt.Errorf("%s has not written %q:\n%s", name, text, t.readLog(name))
		}
		return nil
	})
}

// pollService repeats a check of a running service until it succeeds.
func (t *trial) pollService(ctx context.Context, name string, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-t.running[name].exited:
			return fmt.Errorf("%s has ended: %w", name, errors.Join(t.running[name].err, err))
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		}
	}
}

var warning = regexp.MustCompile(`.*("level":"(WARN|ERROR)"|level=(WARN|ERROR)|warning:).*`)

func (t *trial) checkLogs() error {
	for _, name := range t.names {
		if found := warning.FindString(t.readLog(name)); found != "" {
			return fmt.Errorf("%s has logged: %s", name, found)
		}
	}
	return nil
}

// stopServices stops the running services, the last one first.
func (t *trial) stopServices() error {
	var errs []error
	for _, name := range slices.Backward(t.order) {
		s := t.running[name]
		select {
		case <-s.exited:
		default:
			errs = append(errs, s.cmd.Process.Signal(syscall.SIGTERM))
		}
		err := t.awaitEnd(name)
		if errors.Is(err, errStillRuns) {
			errs = append(errs, s.cmd.Process.Kill())
			<-s.exited
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// removeFiles removes the network and the files.
func (t *trial) removeFiles() error {
	var errs []error
	for _, name := range t.names {
		if _, err := os.Stat("/run/netns/" + t.networkNamespace(name)); err == nil {
			errs = append(errs, runSystemCommand("ip", "netns", "del", t.networkNamespace(name)))
		}
	}
	if _, err := os.Stat("/sys/class/net/" + t.bridge); err == nil {
		errs = append(errs, runSystemCommand("ip", "link", "del", t.bridge))
	}
	return errors.Join(append(errs, os.RemoveAll(t.folder))...)
}
