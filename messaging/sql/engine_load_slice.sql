-- As engine_load, for the messages of a slice.
CREATE FUNCTION engine_load_slice(p_messages uuid[], p_lease bigint, p_organization uuid)
RETURNS TABLE (message_id uuid, kind text, type text, address text, body text, faults integer, failures integer,
              known_id text)
LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
  SELECT m.id, c.kind::text, m.type::text, m.address::text, m.text, m.faults::integer, l.failures::integer,
    m.provider_id::text
  FROM unnest(p_messages) WITH ORDINALITY AS given (id, place) JOIN messages m ON m.id = given.id
    JOIN channels c ON c.id = m.channel_id JOIN lanes l ON l.channel_id = m.channel_id
  WHERE m.organization_id = p_organization AND m.status = 'claimed' AND m.lease = p_lease
  ORDER BY given.place;
END $$;
