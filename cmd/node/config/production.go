package config

// validateProduction rejects keys of Azure accounts in production, because a
// key permits everything and never expires.
func (c *Config) validateProduction(fault faultFunc) {
	if !c.Production {
		return
	}
	const instead = "production uses no keys; remove it, and give the identity of the machine a role"
	for _, k := range []struct {
		name string
		key  Secret
	}{{"cosmos.key", c.Cosmos.Key}, {"servicebus.connection", c.ServiceBus.Connection}, {"blob.key", c.Blob.Key}} {
		if k.key != "" {
			fault(k.name, instead)
		}
	}
	for _, s := range c.Objects.Stores {
		if s.Kind == StoreAzure && s.Key != (TokenSource{}) {
			fault("objects.stores", "%s has a key; %s", s.Bucket, instead)
		}
	}
}
