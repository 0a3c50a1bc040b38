package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/messagehub/messagehub/api/webhook"
	"github.com/messagehub/messagehub/cmd/messagehub/internal/certify"
	"github.com/messagehub/messagehub/cmd/terminal"
	"github.com/messagehub/messagehub/domain"
)

// A certifyCommand contains the flags of messagehub certify.
type certifyCommand struct {
	allow        []string
	insecureHTTP bool
	keys         verifyFlags
	payload      string
	json         bool
	opts         certify.Options
}

func (p *process) certifyCommand() *cobra.Command {
	var c certifyCommand
	cmd := &cobra.Command{
		Use:   "certify URL",
		Short: "Check that a receiver treats the calls of a hub as it should",
		Long: "Check that a receiver handles the calls of a hub correctly. It is called about 35 times, with valid calls\n" +
			"and with calls that it must refuse: altered, old, or signed with another secret. A table shows the results,\n" +
			"followed by what to do about each failure. The receiver has to treat these calls as tests: all events\n" +
			"have the type --type. The command cannot see whether the receiver processes an id only once.\n\n" +
			"The exit status is 1 if a check of level must has failed.\n\n" + verifyHelp,
		Example: "  messagehub certify https://example.org/hook --secret-file secrets.txt\n" +
			"  messagehub certify http://127.0.0.1:9000/ --insecure-http --allow 127.0.0.0/8 --hmac-key 'a secret'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("want one URL, the address of the receiver")
			}
			return nil
		},
	}
	c.addFlags(cmd.Flags())
	cmd.RunE = p.do(func(ctx context.Context, args []string) error {
		if err := c.checkFlags(ctx, p, args[0]); err != nil {
			return p.usage("%w", err)
		}
		ctx, stop := terminal.UntilSignal(ctx)
		defer stop()
		return c.run(ctx, p)
	})
	return cmd
}

func (c *certifyCommand) addFlags(f *pflag.FlagSet) {
	c.keys.addFlags(f)
	f.StringArrayVar(&c.allow, "allow", nil, "also call addresses in this `RANGE`, such as 10.0.0.0/8; may be given more than once")
	f.BoolVar(&c.insecureHTTP, "insecure-http", false, "call over plain http, where others can read and change messages")
	f.DurationVar(&c.opts.Client.Timeout, "timeout", 30*time.Second, "limit for each call, a `TIME`, as in the setting push.timeout")
	f.StringVar(&c.opts.Settings.Method, "method", "POST", "call with `METHOD` of calls, POST or PUT")
	f.StringVar(&c.opts.Settings.Encoding, "encoding", domain.JSONEncoding, "send this content `TYPE`, or "+domain.FormEncoding)
	f.StringVar(&c.opts.Settings.HMACKeyID, "hmac-key-id", "", "`ID` of the HMAC key in Authorization")
	f.DurationVar(&c.opts.Slow, "slow", 3*time.Second, "`TIME` that the slow body takes")
	f.StringVar(&c.opts.Type, "type", "messagehub.certify", "`TYPE` of the events")
	f.StringVar(&c.payload, "payload", "", "send the JSON of `FILE` as the data of the events")
	f.BoolVar(&c.json, "json", false, "print the results as JSON")
}

func (c *certifyCommand) checkFlags(ctx context.Context, p *process, address string) error {
	o := &c.opts
	for _, text := range c.allow {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("--allow: want a range of addresses such as 10.0.0.0/8, got %q", text)
		}
		o.Client.Allow = append(o.Client.Allow, prefix.Masked())
	}
	if o.Client.Timeout < time.Second || o.Client.Timeout > time.Hour {
		return fmt.Errorf("--timeout: want a time from 1s to 1h, got %s", o.Client.Timeout)
	}
	if o.Slow <= 0 || o.Slow >= o.Client.Timeout {
		return fmt.Errorf("--slow: want a time below --timeout, got %s", o.Slow)
	}
	if o.Type == "" {
		return errors.New("--type: want a type of event")
	}
	if err := c.readKeys(p); err != nil {
		return err
	}
	if err := c.readPayload(); err != nil {
		return err
	}
	o.Client.AllowHTTP = c.insecureHTTP
	o.Settings.CallbackURL = address
	o.Settings.SetDefaults()
	if err := o.Settings.Check(); err != nil {
		return asFlagError(err)
	}
	client := webhook.New(o.Client)
	defer client.Close()
	return asFlagError(client.CheckURL(ctx, address))
}

// asFlagError replaces the JSON pointer at the start of an error by the name of
// the corresponding flag.
func asFlagError(err error) error {
	if err == nil {
		return nil
	}
	pointer, detail, _ := strings.Cut(err.Error(), ": ")
	switch pointer {
	case "/callback_url":
		detail = strings.ReplaceAll(detail, "; operators allow http with the setting push.insecure-http", ", or --insecure-http")
		detail = strings.ReplaceAll(detail, "or have operators add its range to the setting push.allow", "or allow its range with --allow; a hub needs push.allow for it")
		return fmt.Errorf("URL: %s", detail)
	case "/hmac_key_id", "/method", "/encoding":
		return fmt.Errorf("--%s: %s", strings.ReplaceAll(pointer[1:], "_", "-"), detail)
	}
	return err
}

func (c *certifyCommand) readKeys(p *process) error {
	secrets, hmacKeys, err := c.keys.readTexts(p)
	if err != nil {
		return err
	}
	for i, text := range secrets {
		s, err := webhook.ParseSecret(text)
		switch {
		case err != nil && strings.HasPrefix(text, "whpk_"):
			return fmt.Errorf("--secret: number %d is a public key, which cannot sign; give the private key (whsk_)", i+1)
		case err != nil:
			return fmt.Errorf("--secret: number %d: %w; a key for Authorization belongs to --hmac-key", i+1, err)
		}
		c.opts.Secrets = append(c.opts.Secrets, s)
	}
	if len(hmacKeys) > 1 {
		return errors.New("--hmac-key: want one key: a call has one Authorization header")
	}
	for _, key := range hmacKeys {
		c.opts.HMACKey = webhook.Key(key)
	}
	return nil
}

func (c *certifyCommand) readPayload() (err error) {
	if c.payload == "" {
		return nil
	}
	f, err := os.Open(c.payload)
	if err != nil {
		return fmt.Errorf("--payload: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	text, err := io.ReadAll(io.LimitReader(f, domain.MaxPayload+1))
	switch {
	case err != nil:
		return fmt.Errorf("--payload: %w", err)
	case len(text) > domain.MaxPayload:
		return fmt.Errorf("--payload: want at most %d bytes", domain.MaxPayload)
	case !json.Valid(text):
		return fmt.Errorf("--payload: %s is not JSON", c.payload)
	}
	c.opts.Payload = text
	return nil
}

func (c *certifyCommand) run(ctx context.Context, p *process) error {
	status := terminal.NewStatusLine(p.err)
	n := 0
	c.opts.Report = func(r certify.Result) {
		if n++; status.Watched {
			status.Draw(terminal.Clip(fmt.Sprintf("%d checks made, the last: %s", n, r.Check), status.Columns()-1))
		}
	}
	results, err := certify.Run(ctx, c.opts)
	status.Clear()
	if err != nil {
		return err
	}
	if c.json {
		err = json.NewEncoder(p.out).Encode(map[string]any{"results": results})
	} else {
		err = certify.Print(p.out, c.shownURL(), results)
	}
	if err == nil && certify.HasFailed(results) {
		err = exitError(exitFailed)
	}
	return err
}

// shownURL returns the URL without the query, which may contain a secret.
func (c *certifyCommand) shownURL() string {
	u, err := url.Parse(c.opts.Settings.CallbackURL)
	if err != nil {
		return "the receiver"
	}
	return u.Scheme + "://" + u.Host + terminal.Printable(u.EscapedPath())
}
