// Not compiled by the project, which has no Bicep compiler. Check with: az bicep build --stdout --file FILE, and az deployment group validate.
// Identities of a hub on Azure Kubernetes Service: its service account, and that of KEDA, are federated with them.

@description('Issuer of the cluster: az aks show --query oidcIssuerProfile.issuerUrl')
param aksOidcIssuer string

@description('Service account of the hub, as NAMESPACE:NAME')
param hubServiceAccount string = 'messagehub:messagehub'

@description('Service account of KEDA, as NAMESPACE:NAME; that of the add-on is the default')
param scalerServiceAccount string = 'kube-system:keda-operator'

@description('Name of the identity of the hub')
param hubIdentityName string

@description('Name of the identity of the scaler')
param scalerIdentityName string

resource hub 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' existing = {
  name: hubIdentityName
}

resource hubAccount 'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials@2023-01-31' = {
  parent: hub
  name: 'aks'
  properties: {
    issuer: aksOidcIssuer
    subject: 'system:serviceaccount:${hubServiceAccount}'
    audiences: [
      'api://AzureADTokenExchange'
    ]
  }
}

resource scaler 'Microsoft.ManagedIdentity/userAssignedIdentities@2023-01-31' existing = {
  name: scalerIdentityName
}

resource scalerAccount 'Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials@2023-01-31' = {
  parent: scaler
  name: 'aks'
  properties: {
    issuer: aksOidcIssuer
    subject: 'system:serviceaccount:${scalerServiceAccount}'
    audiences: [
      'api://AzureADTokenExchange'
    ]
  }
}
