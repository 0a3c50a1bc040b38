package node

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/messagehub/messagehub/cmd/node/backup"
	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cmd/node/doctor"
	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

// singleFinding returns a slice with one finding.
func singleFinding(f doctor.Finding) []doctor.Finding { return []doctor.Finding{f} }

// passedUnless returns findings. If none exist, it returns a finding that
// the check passed, with this text.
func passedUnless(findings []doctor.Finding, format string, args ...any) []doctor.Finding {
	if len(findings) == 0 {
		return singleFinding(doctor.Passed("", format, args...))
	}
	return findings
}

// checkConfiguration warns about settings that are valid, but not recommended.
func (d *diagnosis) checkConfiguration(context.Context) []doctor.Finding {
	var found []doctor.Finding
	warn := func(subject, text, remedy string) { found = append(found, doctor.Warn(subject, text, remedy)) }
	if !d.do.Start { // before a start, Open logs these warnings instead
		for _, warning := range d.cfg.Warnings() {
			text, remedy := splitRemedy(warning)
			warn("", text, remedy)
		}
	}
	if !d.cfg.Embedded() && d.cfg.EmbeddedBlob() {
		warn("blob.endpoint", "events are kept in cosmos.endpoint, and their payloads in the data folder of this machine; only one node may use the account",
			"set blob.endpoint to a storage account, or keep it at one node")
	}
	if !d.cfg.Embedded() && d.cfg.EmbeddedBus() {
		warn("servicebus.namespace", "events are kept in cosmos.endpoint, and messages of domains in the data folder of this machine",
			"set servicebus.namespace, or keep it if domains reach the hub over HTTP or at bus-listen")
	}
	if d.cfg.Embedded() && (!d.cfg.EmbeddedBlob() || !d.cfg.EmbeddedBus()) {
		warn("cosmos.endpoint", "payloads or messages are on Azure, and the events in the data folder of this machine; only one node may use them",
			"set cosmos.endpoint to an account, or keep it at one node")
	}
	if !d.do.Start && !d.cfg.EmbeddedBlob() && d.cfg.Push.SecretKey == "" { // not before a start, because a hub without subscriptions needs no key
		warn("push.secret-key", "it is not set, and payloads are on Azure: the hub creates no subscription with a secret",
			"set push.secret-key-file to a file with the output of openssl rand -base64 32, the same for all nodes")
	}
	if keys := d.azureKeys(); len(keys) > 0 && !d.cfg.Production {
		warn("production", fmt.Sprintf("%s: a key of Azure gives all rights and does not end", strings.Join(keys, ", ")), "use an identity with the roles of messagehub provision --format az, and set production")
	}
	for _, issuer := range d.cfg.OIDC.Issuers {
		if u, err := url.Parse(issuer); err == nil && isEntra(u.Hostname()) && strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/v2.0") {
			for _, audience := range d.cfg.OIDC.Audiences {
				if strings.HasPrefix(audience, "api://") {
					warn("oidc.audience", fmt.Sprintf("%s issues tokens of version 2, whose audience is the id of the application, and never %s", issuer, audience),
						"set oidc.audience to the application (client) id, or oidc.issuer to https://sts.windows.net/TENANT/")
				}
			}
		}
	}
	n := 0
	for _, s := range d.cfg.Settings() {
		if s.Origin != config.ByDefault {
			n++
		}
	}
	from := "no file"
	if file := d.cfg.File(); file != "" {
		from = file
	}
	return passedUnless(found, "%d settings besides the defaults, %s; messagehub config print has them", n, from)
}

// splitRemedy splits a warning at its last semicolon: into the fault and what
// to do.
func splitRemedy(text string) (what, remedy string) {
	if i := strings.LastIndex(text, "; "); i > 0 {
		return text[:i], text[i+2:]
	}
	return text, "correct the setting"
}

func isEntra(host string) bool {
	return host == "login.microsoftonline.com" || strings.HasSuffix(host, ".microsoftonline.us") || host == "login.partner.microsoftonline.cn"
}

// azureKeys returns the names of the settings that contain keys of Azure
// accounts. Emulators' keys do not count.
func (d *diagnosis) azureKeys() (names []string) {
	for _, k := range []struct {
		name string
		key  config.Secret
		at   string
	}{
		{"cosmos.key", d.cfg.Cosmos.Key, d.cfg.Cosmos.Endpoint},
		{"blob.key", d.cfg.Blob.Key, d.cfg.Blob.Endpoint},
		{"servicebus.connection", d.cfg.ServiceBus.Connection, "sb://" + hostOfConnection(d.cfg.ServiceBus.Connection)},
	} {
		if u := parsedURL(k.at); k.key != "" && u != nil && isAzureHost(u.Hostname()) {
			names = append(names, k.name)
		}
	}
	return names
}

// isAzureHost reports whether a host belongs to one of the Azure clouds.
func isAzureHost(host string) bool {
	for _, part := range []string{".azure.", ".windows.net", "cloudapi."} {
		if strings.Contains(host, part) {
			return true
		}
	}
	return false
}

// needsIdentity reports whether the hub authenticates to any service with an
// identity.
func (d *diagnosis) needsIdentity() bool {
	return !d.cfg.Embedded() && d.cfg.Cosmos.Key == "" || !d.cfg.EmbeddedBlob() && d.cfg.Blob.Key == "" || d.cfg.ServiceBus.Namespace != ""
}

// checkIdentityVariables checks the environment variables that select the
// identity for azidentity.
func (d *diagnosis) checkIdentityVariables(context.Context) []doctor.Finding {
	if !d.needsIdentity() {
		return singleFinding(doctor.Passed("", "no identity of Azure is needed"))
	}
	var found []doctor.Finding
	chosen := d.variable(credentialsVariable)
	if d.cfg.Production && !isDeployed(chosen) && !d.do.Start { // not before a start, because Open reports this as an error
		found = append(found, doctor.Fail(credentialsVariable, fmt.Sprintf("it is %q, and production uses no identity of a developer", chosen),
			"set it to prod, EnvironmentCredential, WorkloadIdentityCredential or ManagedIdentityCredential"))
	}
	client, tenant := d.variable("AZURE_CLIENT_ID"), d.variable("AZURE_TENANT_ID")
	secret, file := d.variable("AZURE_CLIENT_SECRET"), d.variable("AZURE_FEDERATED_TOKEN_FILE")
	hasProof := secret != "" || d.variable("AZURE_CLIENT_CERTIFICATE_PATH") != "" || file != ""
	switch {
	case hasProof && (client == "" || tenant == ""):
		found = append(found, doctor.Fail("AZURE_CLIENT_ID", "a secret, a certificate or a token of an application is set, and AZURE_CLIENT_ID or AZURE_TENANT_ID is not",
			"set AZURE_CLIENT_ID and AZURE_TENANT_ID to those of the application"))
	case tenant != "" && client != "" && !hasProof:
		found = append(found, doctor.Warn("AZURE_CLIENT_ID", "it and AZURE_TENANT_ID are set, and nothing proves the identity: no secret, no certificate, no token file",
			"set AZURE_CLIENT_SECRET, AZURE_CLIENT_CERTIFICATE_PATH or AZURE_FEDERATED_TOKEN_FILE, unless it is a managed identity"))
	}
	if file != "" {
		if _, err := os.ReadFile(file); err != nil {
			found = append(found, doctor.Fail("AZURE_FEDERATED_TOKEN_FILE", "the token of the cluster cannot be read: "+err.Error(),
				"check that workload identity is on for this pod and its service account"))
		}
	}
	if chosen == "" {
		return passedUnless(found, "%s is not set, so each identity that this machine has is tried", credentialsVariable)
	}
	return passedUnless(found, "%s is %s", credentialsVariable, chosen)
}

// checkCertificate checks the certificate of the server, and when it expires.
func (d *diagnosis) checkCertificate(context.Context) []doctor.Finding {
	c, err := loadCertificate(d.cfg.TLS, d.opts.Logger)
	switch {
	case err != nil && d.do.Start:
		return singleFinding(doctor.Skip("", "the hub reports it when it opens"))
	case err != nil:
		return singleFinding(doctor.Fail("tls.cert", err.Error(), "correct the files of tls.cert, tls.key and tls.client-ca"))
	case c == nil && d.cfg.TLS.Terminated:
		return singleFinding(doctor.Passed("", "a gateway has TLS"))
	case c == nil:
		return singleFinding(doctor.Passed("", "plain HTTP; tls.cert is not set"))
	}
	leaf := c.loaded.Leaf
	if leaf == nil {
		if leaf, err = x509.ParseCertificate(c.loaded.Certificate[0]); err != nil {
			return singleFinding(doctor.Fail("tls.cert", err.Error(), "replace the file by one with the certificate in PEM"))
		}
	}
	return singleFinding(d.expiryOf("tls.cert", leaf, "the certificate of the hub", "renew it; the hub uses a new file without a restart"))
}

// expiryWarning is how long before the expiry of a certificate the check begins
// to warn.
const expiryWarning = 14 * 24 * time.Hour

// expiryOf returns a finding about the validity period of a certificate. In the
// finding's text, what describes the certificate.
func (d *diagnosis) expiryOf(subject string, leaf *x509.Certificate, what, remedy string) doctor.Finding {
	now := d.clock()
	names := strings.Join(leaf.DNSNames, ", ")
	if names == "" {
		names = leaf.Subject.CommonName
	}
	switch left := leaf.NotAfter.Sub(now); {
	case now.Before(leaf.NotBefore):
		return doctor.Fail(subject, fmt.Sprintf("%s is valid from %s on", what, leaf.NotBefore.Format(time.DateTime)), "check the clock of this machine, or replace the certificate")
	case left <= 0:
		return doctor.Fail(subject, fmt.Sprintf("%s has expired at %s", what, leaf.NotAfter.Format(time.DateTime)), remedy)
	case left < expiryWarning:
		return doctor.Warn(subject, fmt.Sprintf("%s expires in %d days", what, int(left/(24*time.Hour))), remedy)
	default:
		return doctor.Passed("", "%s, for %s, is valid until %s", what, names, leaf.NotAfter.Format(time.DateOnly))
	}
}

// minFileLimit is the minimum limit of open files with which a hub can serve a
// small load.
const minFileLimit = 256

// checkFileLimit checks the maximum number of open files.
func (d *diagnosis) checkFileLimit(context.Context) []doctor.Finding {
	const remedy = "raise the limit to 20000: ulimit -n, or LimitNOFILE in the unit of systemd"
	limit := d.fileLimit()
	hub := planDescriptors(limit).hub
	switch {
	case limit < minFileLimit:
		return singleFinding(doctor.Fail("", fmt.Sprintf("this process may open %d files, and %d are needed at least", limit, minFileLimit), remedy))
	case d.cfg.Limits.Connections > hub:
		return singleFinding(doctor.Fail("limits.connections", fmt.Sprintf("it is %d, and this process may open %d files, which is enough for %d connections", d.cfg.Limits.Connections, limit, hub),
			remedy+"; or lower limits.connections"))
	case min(d.cfg.Limits.Waiting, maxHubConnections*3/4) > hub*3/4:
		return singleFinding(doctor.Warn("", fmt.Sprintf("this process may open %d files, which is enough for %d connections and %d waiting Peeks", limit, hub, hub*3/4),
			remedy+"; or lower limits.waiting"))
	}
	return singleFinding(doctor.Passed("", "this process may open enough files for %d connections", hub))
}

// checkFolder checks the data folder without changing it.
func (d *diagnosis) checkFolder(context.Context) []doctor.Finding {
	dir := d.cfg.Data
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		parent, err := existingParent(dir)
		if err != nil {
			return singleFinding(failedFolder(dir, err))
		}
		return singleFinding(doctor.Passed("", "%s does not exist; serve creates it in %s", dir, parent))
	}
	if err != nil {
		return singleFinding(failedFolder(dir, err))
	}
	if !info.IsDir() {
		return singleFinding(failedFolder(dir, &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}))
	}
	var found []doctor.Finding
	if backup.IsInterrupted(dir) {
		found = append(found, doctor.Fail("", "a restore into "+dir+" was interrupted, and the hub does not start on a part of the data", "run messagehub restore again"))
	} else {
		unfit, err := datafolder.FindUnfit(dir, storesOf(d.cfg))
		if err != nil {
			unfit = []error{err}
		}
		for _, err := range unfit {
			found = append(found, doctor.Fail("", err.Error(), "do what the message says, and never edit the file "+datafolder.IdentityFile))
		}
	}
	for _, name := range []string{cosmosFolder, busFolder, contentFolder, exchangeFolder} {
		part, err := os.Lstat(filepath.Join(dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			found = append(found, failedFolder(dir, err))
		case part.Mode()&fs.ModeSymlink != 0:
			found = append(found, doctor.Fail(name, filepath.Join(dir, name)+" is a link, which the hub does not follow", "mount what it leads to at its place, or make the data folder itself the link"))
		}
	}
	if config.IsOpenToOthers(info) {
		found = append(found, doctor.Warn("", fmt.Sprintf("other users may read or write %s (mode %04o)", dir, info.Mode().Perm()), "run chmod 700 on it"))
	}
	return passedUnless(found, "%s", dir)
}

// failedFolder returns the finding about an unusable data folder.
func failedFolder(dir string, err error) doctor.Finding {
	text, remedy := splitRemedy(folderFault(dir, err).Error())
	return doctor.Fail("", text, remedy)
}

// existingParent returns the nearest existing folder among path and its
// parents.
func existingParent(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	for {
		info, err := os.Stat(path)
		switch {
		case err == nil && !info.IsDir():
			return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
		case err == nil:
			return path, nil
		case !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path:
			return "", err
		}
		path = filepath.Dir(path)
	}
}

// checkLock checks whether another process uses the data folder. It passes if
// that process is a hub with these settings.
func (d *diagnosis) checkLock(ctx context.Context) []doctor.Finding {
	isLocked, err := d.isFolderLocked()
	switch {
	case err != nil:
		return singleFinding(failedFolder(d.cfg.Data, err))
	case !isLocked:
		return singleFinding(doctor.Passed("", "no process has the data folder"))
	case d.isHubAt(ctx, d.cfg.Listen):
		return singleFinding(doctor.Passed("", "the hub that runs at %s has the data folder", d.cfg.Listen))
	}
	return singleFinding(doctor.Fail("", "another process has the data folder "+d.cfg.Data+", and no hub answers at "+d.cfg.Listen,
		"stop that process, or choose another folder with --data"))
}

// isFolderLocked reports whether a process has locked the data folder.
func (d *diagnosis) isFolderLocked() (bool, error) {
	root, err := os.OpenRoot(d.cfg.Data)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = root.Close() }() // nothing is lost if Close fails, because nothing was written through root
	if _, err := root.Lstat(lockName); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	lock, err := datafolder.Lock(root, lockName)
	if errors.Is(err, datafolder.ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Close()
}

// isThisHubRunning reports whether a hub responds at listen and may be the hub with these settings. A hub responds
// there that has another data folder, if no process has locked the data folder of these settings.
func (d *diagnosis) isThisHubRunning(ctx context.Context) bool {
	if d.keepsData() && datafolder.CanLock {
		if isLocked, err := d.isFolderLocked(); err == nil && !isLocked {
			return false
		}
	}
	return d.isHubAt(ctx, d.cfg.Listen)
}

// isHubAt reports whether a hub responds at an address on this machine.
func (d *diagnosis) isHubAt(ctx context.Context, address string) bool {
	scheme := "http://"
	if d.cfg.TLS.Certificate != "" {
		scheme = "https://"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+reachableAddress(withHost(address))+"/healthz", http.NoBody)
	if err != nil {
		return false
	}
	client := d.opts.network.hubOnThisMachine()
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }() // nothing is lost if Close fails
	const limit = 1 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	return err == nil && resp.StatusCode == http.StatusOK && strings.Contains(string(text), `"status":"ok"`)
}

// withHost replaces an empty host by the loopback address.
func withHost(address string) string {
	if host, port, err := net.SplitHostPort(address); err == nil && host == "" {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return address
}

// checkSpace checks how much space is free on the disks of the data folder.
func (d *diagnosis) checkSpace(ctx context.Context) []doctor.Finding {
	var existing []string
	for _, folder := range dataFolders(d.cfg) {
		if _, err := os.Stat(folder); err == nil {
			existing = append(existing, folder)
		}
	}
	if len(existing) == 0 {
		parent, err := existingParent(d.cfg.Data)
		if err != nil {
			return singleFinding(failedFolder(d.cfg.Data, err))
		}
		existing = []string{parent}
	}
	disk := &diskCheck{folders: existing, floor: d.cfg.Limits.FreeDisk, measure: d.measureDisk}
	if err := disk.run(ctx); err != nil {
		unready, _ := errors.AsType[*unreadyError](err)
		return singleFinding(doctor.Fail("", unready.Error(), unready.remedy))
	}
	usage, err := d.measureDisk(existing[0])
	if err != nil || !usage.isKnown {
		return singleFinding(doctor.Skip("", "this system does not report free space"))
	}
	if usage.free < 4*uint64(d.cfg.Limits.FreeDisk) { //nolint:gosec // a size is positive
		return singleFinding(doctor.Warn("", fmt.Sprintf("the disk of %s has %d MB free, and the hub stops being ready at limits.free-disk = %s", existing[0], usage.free>>20, d.cfg.Limits.FreeDisk),
			"free space on it, or enlarge it"))
	}
	return singleFinding(doctor.Passed("", "%d MB are free", usage.free>>20))
}

// slowSync is the longest acceptable duration of a synced write. A slower disk
// cannot serve a hub under load.
const slowSync = 20 * time.Millisecond

// checkSync measures how long a small synced write takes.
func (d *diagnosis) checkSync(context.Context) []doctor.Finding {
	folder := d.cfg.Data
	if _, err := os.Stat(folder); err != nil {
		if folder, err = existingParent(folder); err != nil {
			return singleFinding(failedFolder(d.cfg.Data, err))
		}
	}
	took, err := d.writeSynced(folder)
	if err != nil && d.do.Start {
		return singleFinding(doctor.Skip("", "the hub reports it when it opens"))
	}
	if err != nil {
		return singleFinding(failedFolder(folder, err))
	}
	if took > slowSync {
		return singleFinding(doctor.Warn("", fmt.Sprintf("a small write takes %s until it is on the disk of %s; each request that stores something waits for one", took.Round(100*time.Microsecond), folder),
			"use a local disk, or one with a write cache that survives a loss of power"))
	}
	return singleFinding(doctor.Passed("", "a small write takes %s until it is on the disk", took.Round(10*time.Microsecond)))
}

const (
	syncFilePrefix = ".doctor-"
	syncedWrites   = 9 // number of synced writes, of which the median is reported
)

// writeSynced writes and syncs a file in a folder n times, and removes the
// file. It returns the median duration of a write. It also removes files that
// remained when earlier calls died.
func writeSynced(folder string, n int) (took time.Duration, err error) {
	removeSyncFiles(folder)
	file, err := os.CreateTemp(folder, syncFilePrefix+"*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	page := make([]byte, 4<<10)
	times := make([]time.Duration, n)
	for i := range times {
		began := time.Now()
		if _, err := file.Write(page); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		times[i] = time.Since(began)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// removeSyncFiles removes old files of writeSynced: those that are more than a
// minute old. It ignores errors.
func removeSyncFiles(folder string) {
	left, _ := filepath.Glob(filepath.Join(folder, syncFilePrefix+"*"))
	for _, name := range left {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > time.Minute {
			_ = os.Remove(name)
		}
	}
}

// checkPorts checks that the addresses on which the hub listens are free, or
// used by a hub with these settings.
func (d *diagnosis) checkPorts(ctx context.Context) []doctor.Finding {
	addresses := []struct{ key, address string }{{"listen", d.cfg.Listen}}
	if d.cfg.HasOperatorListener() {
		addresses = append(addresses, struct{ key, address string }{"admin-listen", d.cfg.AdminListen})
	}
	if d.cfg.EmbeddedBus() && d.cfg.BusListen != "" {
		addresses = append(addresses, struct{ key, address string }{"bus-listen", d.cfg.BusListen})
	}
	if d.cfg.EmbeddedBlob() && d.cfg.BlobListen != "" {
		addresses = append(addresses, struct{ key, address string }{"blob-listen", d.cfg.BlobListen})
	}
	var found []doctor.Finding
	var isHub *bool // a hub with these settings runs; nil while unknown
	var free []string
	for _, a := range addresses {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", a.address)
		if err == nil {
			_ = l.Close() // no connection was accepted
			free = append(free, a.address)
			continue
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			if isHub == nil {
				is := d.isThisHubRunning(ctx)
				isHub = &is
			}
			if *isHub {
				found = append(found, doctor.Passed(a.key, "%s: the hub that runs has it", a.address))
				continue
			}
			if (a.key == "bus-listen" || a.key == "blob-listen") && d.cfg.IsDefault(a.key) {
				found = append(found, doctor.Warn(a.key, a.address+" is used by another program, so the hub starts without it, and domains cannot reach it there", "choose another address with --"+a.key))
				continue
			}
		}
		text, remedy := splitRemedy(explainListen(a.address, a.key, err).Error())
		found = append(found, doctor.Fail(a.key, text, remedy))
	}
	return passedUnless(found, "%s: free", strings.Join(free, ", "))
}

// CheckConfiguration returns what messagehub config check reports about a
// configuration that Validate accepts.
func CheckConfiguration(ctx context.Context, cfg *config.Config) []doctor.Finding {
	d := newDiagnosis(cfg, DoctorOptions{}, Options{})
	defer d.opts.network.close()
	check := doctor.Check{Name: "configuration", Run: d.checkConfiguration}
	return doctor.Run(ctx, []doctor.Check{check}, doctor.Options{}).Findings
}
