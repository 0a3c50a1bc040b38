package config

// MinSessionKey is the length in characters from which a secret cannot be
// guessed. That matters because visitors have cookies that are sealed with a
// key derived from it.
const MinSessionKey = 26

func (c *Config) validateConsole(fault faultFunc) {
	if c.Console.ClientID == "" && c.Console.ClientSecret != "" {
		fault("console.client-secret", "there is no console.client-id that it is of; add that, or remove this")
	}
	if c.Console.ClientID != "" && !c.OIDC.IsOn() {
		fault("console.client-id", "there is no oidc.issuer at which operators could sign in; add that, or remove this")
	}
	if n := len(c.Console.SessionKey); n > 0 && n < MinSessionKey {
		fault("console.session-key", "want %d characters or more, such as openssl rand -hex 32 prints", MinSessionKey)
	}
}
