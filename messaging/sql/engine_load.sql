-- What a worker must know of a claim to prepare it; no row where the claim is gone or another tenant's.
CREATE FUNCTION engine_load(p_message uuid, p_lease bigint, p_organization uuid)
RETURNS TABLE (kind text, type text, address text, body text, faults integer, failures integer,
              known_id text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT c.kind::text, m.type::text, m.address::text, m.text, m.faults::integer, l.failures::integer,
    m.provider_id::text
  FROM messages m JOIN channels c ON c.id = m.channel_id JOIN lanes l ON l.channel_id = m.channel_id
  WHERE m.id = p_message AND m.organization_id = p_organization AND m.status = 'claimed' AND m.lease = p_lease;
END $$;
