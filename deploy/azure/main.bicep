// Not compiled by the project, which has no Bicep compiler. Check with: az bicep build --stdout --file FILE, and az deployment group validate.
// MessageHub on Azure: the resources in resources.bicep, and the hub on Container Apps, or its identities on AKS.

@description('Where the hub runs; none: its machines are described elsewhere')
@allowed([
  'containerapps'
  'aks'
  'none'
])
param platform string = 'none'

@description('Region of all resources')
param location string = resourceGroup().location

@description('What the names of resources begin with: up to 11 lower case letters')
param prefix string = 'messagehub'

@description('Keep replicas in several availability zones, in regions that have them')
param zoneRedundant bool = true

@description('Subnet of private endpoints; empty: the accounts are reached over the internet. With it, Service Bus has the tier Premium')
param privateEndpointSubnetId string = ''

@description('Object id of the managed identity or service principal of the domain Aggregations; empty: it gets no roles')
param domainAggregationsPrincipalId string = ''

@description('Object id of the managed identity or service principal of the domain Charges; empty: it gets no roles')
param domainChargesPrincipalId string = ''

@description('Object id of the managed identity or service principal of the domain MarketRoles; empty: it gets no roles')
param domainMarketRolesPrincipalId string = ''

@description('Object id of the managed identity or service principal of the domain MeteringPoints; empty: it gets no roles')
param domainMeteringPointsPrincipalId string = ''

@description('Object id of the managed identity or service principal of the domain TimeSeries; empty: it gets no roles')
param domainTimeSeriesPrincipalId string = ''

@description('Name of the Cosmos account')
param cosmosAccountName string = '${prefix}-${uniqueString(resourceGroup().id)}'

@description('Consistency of the Cosmos account. With Strong or BoundedStaleness, what a region loses is bounded')
@allowed([
  'Session'
  'BoundedStaleness'
  'Strong'
])
param cosmosConsistency string = 'Session'

@description('Autoscale maximum of the container catalog in RU/s; deploying again sets it back to this')
param catalogMaxThroughput int = 4000

@description('Autoscale maximum of the container cabinet in RU/s; deploying again sets it back to this')
param cabinetMaxThroughput int = 4000

@description('Autoscale maximum of the container bundles in RU/s; deploying again sets it back to this')
param bundlesMaxThroughput int = 4000

@description('Autoscale maximum of the container streams in RU/s; deploying again sets it back to this')
param streamsMaxThroughput int = 4000

@description('Autoscale maximum of the container cursors in RU/s; deploying again sets it back to this')
param cursorsMaxThroughput int = 4000

@description('Autoscale maximum of the container objects in RU/s; deploying again sets it back to this')
param objectsMaxThroughput int = 4000

@description('Private DNS zone of Sql endpoints; empty: names are resolved by other means')
param cosmosDnsZoneId string = ''

@description('Name of the Service Bus namespace')
param serviceBusName string = '${prefix}-${uniqueString(resourceGroup().id)}'

@description('Tier of the Service Bus namespace; private endpoints need Premium')
@allowed([
  'Standard'
  'Premium'
])
param serviceBusSku string = 'Standard'

@description('Private DNS zone of namespace endpoints; empty: names are resolved by other means')
param serviceBusDnsZoneId string = ''

@description('Name of the storage account: up to 24 lower case letters and digits')
param storageAccountName string = '${prefix}${uniqueString(resourceGroup().id)}'

@description('Days in which a blob that was deleted or replaced can be restored')
param blobRestoreDays int = 7

@description('Private DNS zone of blob endpoints; empty: names are resolved by other means')
param blobDnsZoneId string = ''

@description('Image of MessageHub, such as example.azurecr.io/messagehub:1.0.0. Required for Container Apps')
param image string = ''

@description('Registry that the hub\'s identity pulls the image from, such as example.azurecr.io; empty: one that asks for no credentials')
param registryServer string = ''

@description('Further settings of the hub, as {name, value}, such as MESSAGEHUB_LIMITS_TRUSTED_PROXIES')
param extraSettings array = []

@description('Issuer whose tokens say who sends a request, such as https://login.microsoftonline.com/TENANT/v2.0. Required for Container Apps')
param oidcIssuer string = ''

@description('Audience that tokens must be for. Required for Container Apps')
param oidcAudience string = ''

@description('Bearer token of the operators: at least 32 random characters. Required for Container Apps')
@secure()
param adminToken string = ''

@description('Key that seals the secrets of subscriptions: the Base64 of 32 random bytes. Required for Container Apps')
@secure()
param pushSecretKey string = ''

@description('Subnet of the environment; empty: a network that Azure creates, from which no private endpoint is reached')
param infrastructureSubnetId string = ''

@description('Clients reach the hub over the internet')
param external bool = true

@description('Smallest number of nodes')
param minReplicas int = 2

@description('Largest number of nodes')
param maxReplicas int = 6

@description('Events that wait in a queue for each node')
param messagesPerReplica int = 1000

@description('Issuer of the cluster: az aks show --query oidcIssuerProfile.issuerUrl. Required for AKS')
param aksOidcIssuer string = ''

@description('Service account of the hub, as NAMESPACE:NAME')
param hubServiceAccount string = 'messagehub:messagehub'

@description('Service account of KEDA, as NAMESPACE:NAME; that of the add-on is the default')
param scalerServiceAccount string = 'kube-system:keda-operator'

module resources 'resources.bicep' = {
  name: 'resources'
  params: {
    location: location
    prefix: prefix
    zoneRedundant: zoneRedundant
    privateEndpointSubnetId: privateEndpointSubnetId
    domainAggregationsPrincipalId: domainAggregationsPrincipalId
    domainChargesPrincipalId: domainChargesPrincipalId
    domainMarketRolesPrincipalId: domainMarketRolesPrincipalId
    domainMeteringPointsPrincipalId: domainMeteringPointsPrincipalId
    domainTimeSeriesPrincipalId: domainTimeSeriesPrincipalId
    cosmosAccountName: cosmosAccountName
    cosmosConsistency: cosmosConsistency
    catalogMaxThroughput: catalogMaxThroughput
    cabinetMaxThroughput: cabinetMaxThroughput
    bundlesMaxThroughput: bundlesMaxThroughput
    streamsMaxThroughput: streamsMaxThroughput
    cursorsMaxThroughput: cursorsMaxThroughput
    objectsMaxThroughput: objectsMaxThroughput
    cosmosDnsZoneId: cosmosDnsZoneId
    serviceBusName: serviceBusName
    serviceBusSku: serviceBusSku
    serviceBusDnsZoneId: serviceBusDnsZoneId
    storageAccountName: storageAccountName
    blobRestoreDays: blobRestoreDays
    blobDnsZoneId: blobDnsZoneId
  }
}

module containerApp 'container-app.bicep' = if (platform == 'containerapps') {
  name: 'containerApp'
  params: {
    location: location
    name: prefix
    image: image
    registryServer: registryServer
    hubIdentityId: resources.outputs.hubIdentityId
    hubClientId: resources.outputs.hubClientId
    scalerIdentityId: resources.outputs.scalerIdentityId
    serviceBusName: resources.outputs.serviceBusName
    fifoQueue: resources.outputs.fifoQueue
    plainQueue: resources.outputs.plainQueue
    settings: concat(resources.outputs.settings, extraSettings)
    oidcIssuer: oidcIssuer
    oidcAudience: oidcAudience
    adminToken: adminToken
    pushSecretKey: pushSecretKey
    infrastructureSubnetId: infrastructureSubnetId
    external: external
    minReplicas: minReplicas
    maxReplicas: maxReplicas
    messagesPerReplica: messagesPerReplica
  }
}

module aks 'aks.bicep' = if (platform == 'aks') {
  name: 'aks'
  params: {
    aksOidcIssuer: aksOidcIssuer
    hubServiceAccount: hubServiceAccount
    scalerServiceAccount: scalerServiceAccount
    hubIdentityName: resources.outputs.hubIdentityName
    scalerIdentityName: resources.outputs.scalerIdentityName
  }
}

output settings array = resources.outputs.settings
output serviceBusName string = resources.outputs.serviceBusName
output fifoQueue string = resources.outputs.fifoQueue
output plainQueue string = resources.outputs.plainQueue
output hubIdentityName string = resources.outputs.hubIdentityName
output hubIdentityId string = resources.outputs.hubIdentityId
output hubClientId string = resources.outputs.hubClientId
output hubPrincipalId string = resources.outputs.hubPrincipalId
output scalerIdentityName string = resources.outputs.scalerIdentityName
output scalerIdentityId string = resources.outputs.scalerIdentityId
output scalerClientId string = resources.outputs.scalerClientId
