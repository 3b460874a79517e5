-- The status that a rank of evidence stands for (messaging.ranks).
CREATE FUNCTION engine_status(p_rank integer) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE p_rank WHEN 3 THEN 'sent' WHEN 4 THEN 'delivered' WHEN 5 THEN 'read' WHEN 6 THEN 'played' END
$$;
